package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkFence: a node that another scope's controller has fenced refuses this one.
func checkFence(w *ward) []Finding {
	var found []Finding
	for _, m := range w.Members {
		read, ok := m.read()
		if !ok || !read.Node.Fence.OK || read.Node.Fence.V.Scope == w.Policy.Scope {
			continue
		}
		found = append(found, Finding{Code: plan.CondForeignEpoch, Severity: plan.Critical, Subject: m.Name,
			Message: fmt.Sprintf("the fence on %s is of scope %s, this configuration's is %s: it refuses this controller", m.Name, read.Node.Fence.V.Scope, w.Policy.Scope),
			Hint:    "another slotkeeper manages this node: stop it, then slotkeeper uninstall with its configuration; or correct scope"})
	}
	return found
}
