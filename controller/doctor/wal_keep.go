package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkWALKeep: a mirror that nobody moves any more pins WAL on its standby
// until the disk is full.
func checkWALKeep(w *ward) []Finding {
	var found []Finding
	for _, m := range w.standbys() {
		limit, known := m.number("max_slot_wal_keep_size")
		if !known || limit >= 0 {
			continue
		}
		found = append(found, Finding{Code: CodeWALUnbounded, Severity: plan.Warning, Subject: m.Name,
			Message: fmt.Sprintf("max_slot_wal_keep_size is unlimited on %s: if slotkeeper stops, the mirrors keep WAL there until the disk is full", m.Name),
			Hint:    "set it to what the disk can spare, such as half of its free space, and reload"})
	}
	return found
}
