package doctor

import (
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkPlugins: whether a standby has the library of an output plugin is known
// once a controller has asked it to make a mirror.
func checkPlugins(w *ward) []Finding {
	var found []Finding
	for _, v := range w.Verdicts {
		if v.Reason == plan.ReasonPluginMissing {
			found = append(found, Finding{Code: string(v.Reason), Severity: plan.Critical, Subject: v.Standby + "/" + v.Slot, Message: v.Message, Hint: v.Hint})
		}
	}
	return found
}
