package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkRoom: a standby needs a slot for each mirror and two for slotkeeper's
// own; the primary needs one for its hold.
func checkRoom(w *ward) []Finding {
	mirrors := len(w.managed())
	var found []Finding
	for _, m := range w.inspected() {
		read, ok := m.read()
		if !ok || w.primary == nil {
			continue
		}
		others := 0 // a copy that the server's own synchronization made counts for its slot
		for _, s := range read.Slots {
			if !w.ours(s) && !s.Synced && (m != w.primary || !w.Policy.Selected(s)) {
				others++
			}
		}
		needed, own := mirrors+2+others, "2 of slotkeeper's own"
		if m == w.primary {
			needed, own = mirrors+1+others, "1 of slotkeeper's own"
		}
		if needed <= read.Node.MaxSlots {
			continue
		}
		found = append(found, tight(m.Name, read.Node, needed, fmt.Sprintf("%d that slotkeeper keeps, %s, %d others", mirrors, own, others)))
	}
	return found
}

func tight(name string, n cluster.Node, needed int, which string) Finding {
	return Finding{Code: string(plan.ReasonNoFreeSlot), Severity: plan.Critical, Subject: name,
		Message: fmt.Sprintf("max_replication_slots is %d on %s, %d slots are needed: %s", n.MaxSlots, name, needed, which),
		Hint:    "raise it there and restart the server; every node may become the primary, so give all of them the same",
		On:      name, SQL: []string{fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; -- and restart", needed)}}
}
