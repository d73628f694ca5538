package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkExtension: files on every node, objects in the database of the
// configuration. That library, objects and protocol fit together a read has
// checked already; see checkReachable.
func checkExtension(w *ward) []Finding {
	var found []Finding
	for _, m := range w.inspected() {
		i := m.Inspection.Value
		f := Finding{Code: string(plan.ReasonExtensionUnavailable), Severity: plan.Critical, Subject: m.Name}
		switch {
		case i.Available == "":
			f.Message = fmt.Sprintf("the files of the extension slotkeeper are not installed on %s", m.Name)
			f.Hint = "install the same package on every node"
		case i.Script == "":
			f.Message = fmt.Sprintf("database %q on %s has no extension slotkeeper", i.Database, m.Name)
			f.Hint = "create it on the primary, standbys get it by replication; or name the database that has it in postgres.dbname"
			f.On, f.Database, f.SQL = w.onPrimary(), i.Database, append([]string{"CREATE EXTENSION slotkeeper;"}, i.Grants...)
		case i.Script != i.Available:
			f.Severity = plan.Warning
			f.Message = fmt.Sprintf("the SQL objects in database %q on %s are of version %s, version %s is installed", i.Database, m.Name, i.Script, i.Available)
			f.Hint = "update them on the primary once every node has the new files"
			f.On, f.Database, f.SQL = w.onPrimary(), i.Database, []string{"ALTER EXTENSION slotkeeper UPDATE;"}
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}
