package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// tooOld is which part of autovacuum_freeze_max_age a hold may be old: beyond
// that it is no mirror's delay any more but something forgotten.
const tooOld = 10

// checkHoldAge: nothing in PostgreSQL bounds what a hold pins.
func checkHoldAge(w *ward) []Finding {
	var found []Finding
	for _, m := range w.inspected() {
		age := m.Inspection.Value.HoldAge
		limit, known := m.number("autovacuum_freeze_max_age")
		if !age.OK || !known || age.V <= limit/tooOld {
			continue
		}
		found = append(found, Finding{Code: plan.CondHoldAge, Severity: plan.Warning, Subject: m.Name,
			Message: fmt.Sprintf("%s on %s is %d transactions old, more than %d %% of autovacuum_freeze_max_age (%d): catalogs of all databases bloat", cluster.HoldName, m.Name, age.V, 100/tooOld, limit),
			Hint: fmt.Sprintf("see which standby is away (slotkeeper status) and bring it back; to give slotkeeper up: SELECT pg_drop_replication_slot('%s'); on each node, and drop the mirrors on the standbys",
				cluster.HoldName)})
	}
	return found
}
