package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkVersions: a library that differs from the primary's may prove otherwise.
func checkVersions(w *ward) []Finding {
	if w.primary == nil {
		return nil
	}
	first, ok := w.primary.read()
	if !ok {
		return nil
	}
	var found []Finding
	for _, m := range w.standbys() {
		read, ok := m.read()
		if !ok || read.Node.Library == first.Node.Library {
			continue
		}
		found = append(found, Finding{Code: CodeVersionsDiffer, Severity: plan.Warning, Subject: m.Name,
			Message: fmt.Sprintf("the extension's library is %s on %s and %s on the primary %s", read.Node.Library, m.Name, first.Node.Library, w.primary.Name),
			Hint:    "install the same package on every node"})
	}
	return found
}
