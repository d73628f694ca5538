package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Grants gives the SQL that lets a role do all that slotkeeper does, to be run
// by a superuser on the primary, in the database that has the extension. The
// role must exist: CREATE ROLE name LOGIN. Running it again changes nothing. In
// order: for the REPLICATION attribute, the statistics, the schema, its functions.
func Grants(role string) []string {
	r := quoteIdent(role)
	return []string{
		fmt.Sprintf("ALTER ROLE %s LOGIN REPLICATION;", r),
		fmt.Sprintf("GRANT pg_monitor TO %s;", r),
		fmt.Sprintf("GRANT USAGE ON SCHEMA slotkeeper TO %s;", r),
		fmt.Sprintf("GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO %s;", r),
	}
}

// objectGrants are those of Grants on what CREATE EXTENSION makes.
func objectGrants(role string) []string { return Grants(role)[2:] }

func quoteIdent(name string) string { return pgx.Identifier{name}.Sanitize() }

// hbaWord quotes a name for pg_hba.conf, where a plain word may be a keyword.
func hbaWord(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// StandbySlotGrants gives the SQL that lets a role manage
// synchronized_standby_slots, beyond Grants; to be run on the primary by a superuser.
func StandbySlotGrants(role string) []string {
	r := quoteIdent(role)
	return []string{
		fmt.Sprintf("GRANT ALTER SYSTEM ON PARAMETER synchronized_standby_slots TO %s;", r),
		fmt.Sprintf("GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO %s;", r),
	}
}
