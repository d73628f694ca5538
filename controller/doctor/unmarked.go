package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkUnmarked: a slot on a standby that has the name of one to be mirrored
// and is not ours is never altered, so there will be no mirror. A copy of the
// server's own slot synchronization is where it belongs.
func checkUnmarked(w *ward) []Finding {
	var found []Finding
	managed := map[string]bool{}
	for _, s := range w.managed() {
		managed[s.Name] = true
	}
	for _, m := range w.standbys() {
		read, ok := m.read()
		for _, s := range read.Slots {
			own := s.Name == cluster.HoldName || s.Name == cluster.WALHoldName
			if !ok || w.ours(s) || s.Synced || !managed[s.Name] && !own {
				continue
			}
			found = append(found, Finding{Code: string(plan.ReasonNotOurs), Severity: plan.Critical, Subject: m.Name + "/" + s.Name,
				Message: fmt.Sprintf("%s has a %s slot %s without the marker of scope %s: slotkeeper leaves it alone and makes no mirror", m.Name, s.Kind, s.Name, w.Policy.Scope),
				Hint:    fmt.Sprintf("if nobody needs it there: SELECT pg_drop_replication_slot('%s'); on %s, then it is made anew", s.Name, m.Name)})
		}
	}
	return found
}
