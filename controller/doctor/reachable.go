package doctor

import (
	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// told reports whether checkRole or checkExtension says why a read failed.
func told(i cluster.Inspection) bool {
	return len(i.Lacks) > 0 || i.Script == "" || i.Available == ""
}

// checkReachable: a member that does not answer, or whose answer is not that of
// a server that slotkeeper can work with, for a reason that no other check tells.
func checkReachable(w *ward) []Finding {
	var found []Finding
	for _, m := range w.Members {
		f := Finding{Severity: plan.Critical, Subject: m.Name}
		switch {
		case !m.Inspection.OK():
			f.Code, f.Message, f.Hint = string(m.Inspection.Reason), m.Inspection.Err, m.Inspection.Hint
		case m.Read.OK() || told(m.Inspection.Value):
			continue
		default:
			f.Code, f.Message, f.Hint = string(m.Read.Reason), m.Read.Err, m.Read.Hint
		}
		if f.Code == "" {
			f.Code = string(plan.ReasonUnreachable)
		}
		found = append(found, f)
	}
	return found
}
