package doctor

import (
	"fmt"
	"strings"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkRole: the role may do everything that slotkeeper does. A member that
// does not let it in is for checkReachable.
func checkRole(w *ward) []Finding {
	var found []Finding
	for _, m := range w.inspected() {
		i := m.Inspection.Value
		if len(i.Lacks) == 0 {
			continue
		}
		f := Finding{Code: string(plan.ReasonNoPrivilege), Severity: plan.Critical, Subject: m.Name,
			Message: fmt.Sprintf("role %q on %s lacks %s", i.Role, m.Name, strings.Join(i.Lacks, " and ")),
			Hint:    fmt.Sprintf("on the primary, in database %q, as superuser: %s", i.Database, strings.Join(i.Grants, " "))}
		if i.Script != "" {
			f.On, f.Database, f.SQL = w.onPrimary(), i.Database, i.Grants // without the extension they stand beside its creation
		}
		found = append(found, f)
	}
	return found
}
