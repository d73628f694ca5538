package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkSystem: all members are copies of one cluster.
func checkSystem(w *ward) []Finding {
	right, of := w.system()
	var found []Finding
	for _, m := range w.Members {
		read, ok := m.read()
		if !ok || right == 0 || read.Node.SystemID == right {
			continue
		}
		found = append(found, Finding{Code: string(plan.ReasonWrongEndpoint), Severity: plan.Critical, Subject: m.Name,
			Message: fmt.Sprintf("%s is of system %s, %s of system %s: it is no copy of the same cluster", m.Name, read.Node.SystemID, of, right),
			Hint:    "correct its conninfo; nothing is ever written there"})
	}
	return found
}

// system is the primary's identifier, else that of the first member read.
func (w *ward) system() (cluster.SystemID, string) {
	if w.primary != nil {
		if read, ok := w.primary.read(); ok {
			return read.Node.SystemID, w.primary.Name
		}
	}
	for _, m := range w.Members {
		if read, ok := m.read(); ok {
			return read.Node.SystemID, m.Name
		}
	}
	return 0, ""
}
