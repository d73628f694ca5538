package doctor

import (
	"fmt"
	"strings"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkPrimary: exactly one member is writable.
func checkPrimary(w *ward) []Finding {
	switch {
	case len(w.writable) == 1 || len(w.inspected()) == 0:
		return nil // where nobody answers, nothing is known of roles
	case len(w.writable) > 1:
		names := make([]string, 0, len(w.writable))
		for _, m := range w.writable {
			names = append(names, m.Name)
		}
		return []Finding{{Code: plan.CondSplitBrain, Severity: plan.Critical, Subject: strings.Join(names, ", "),
			Message: fmt.Sprintf("%d members are writable: %s", len(names), strings.Join(names, ", ")),
			Hint:    "stop all but the true primary, and make the others standbys of it (pg_rewind); or correct a conninfo that leads to the wrong server"}}
	}
	return []Finding{{Code: plan.CondNoLeader, Severity: plan.Critical, Subject: "primary",
		Message: fmt.Sprintf("of the members that answer (%d) none is writable", len(w.standbys())),
		Hint:    "name the primary among cluster.members, start it, or promote a standby"}}
}
