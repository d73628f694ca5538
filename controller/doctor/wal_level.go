package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkWalLevel: below logical a primary decodes nothing, and a standby with a
// logical slot would not start.
func checkWalLevel(w *ward) []Finding {
	var found []Finding
	for _, m := range w.inspected() {
		level, known := m.setting("wal_level")
		if !known || level == "logical" {
			continue
		}
		found = append(found, Finding{Code: string(plan.ReasonWalLevel), Severity: plan.Critical, Subject: m.Name,
			Message: fmt.Sprintf("wal_level is %s on %s", level, m.Name),
			Hint:    "set it to logical there and restart the server",
			On:      m.Name, SQL: []string{"ALTER SYSTEM SET wal_level = 'logical'; -- and restart"}})
	}
	return found
}
