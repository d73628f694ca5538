package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkFeedback: no proof rests on it, but queries on the standby do.
func checkFeedback(w *ward) []Finding {
	var found []Finding
	for _, m := range w.standbys() {
		value, known := m.setting("hot_standby_feedback")
		if !known || value == "on" {
			continue
		}
		found = append(found, Finding{Code: plan.CondFeedbackOff, Severity: plan.Warning, Subject: m.Name,
			Message: fmt.Sprintf("hot_standby_feedback is off on %s", m.Name),
			Hint:    "slots are safe without it (the hold protects them); queries on the standby may be cancelled",
			On:      m.Name, SQL: []string{"ALTER SYSTEM SET hot_standby_feedback = on;", "SELECT pg_reload_conf();"}})
	}
	return found
}
