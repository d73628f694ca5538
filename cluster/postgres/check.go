package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// checkSQL looks at a new connection once: which backend it is, and whether
// the role may do all that slotkeeper does. transaction_timeout (17) is overridden
// here, as a setting that the server does not know is an error in the startup packet.
const checkSQL = `
SELECT pg_backend_pid(),
       r.rolreplication OR r.rolsuper,
       pg_has_role('pg_read_all_stats', 'USAGE'),
       COALESCE((SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace n WHERE n.nspname = 'slotkeeper'), true),
       ARRAY(SELECT p.oid::regprocedure::text
               FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
              WHERE n.nspname = 'slotkeeper' AND NOT has_function_privilege(p.oid, 'EXECUTE')
              ORDER BY 1),
       ARRAY(SELECT set_config(g.name, '0', false)
               FROM pg_settings g
              WHERE g.name = 'transaction_timeout')
  FROM pg_roles r
 WHERE r.rolname = current_user`

// access is what the role of a session may do.
type access struct {
	pid                        uint32
	replication, stats, schema bool
	functions                  []string // those that it may not call
}

func readAccess(ctx context.Context, c *pgx.Conn) (access, error) {
	var a access
	var settings []string
	row := c.QueryRow(ctx, checkSQL, pgx.QueryExecModeExec)
	if err := row.Scan(&a.pid, &a.replication, &a.stats, &a.schema, &a.functions, &settings); err != nil {
		return a, fmt.Errorf("looking at the new connection: %w", err)
	}
	return a, nil
}

func (a access) lacks() []string {
	var lacks []string
	if !a.replication {
		lacks = append(lacks, "the REPLICATION attribute")
	}
	if !a.stats {
		lacks = append(lacks, "membership in pg_monitor")
	}
	if !a.schema {
		lacks = append(lacks, "USAGE on schema slotkeeper")
	}
	if len(a.functions) > 0 {
		lacks = append(lacks, "EXECUTE on "+strings.Join(a.functions, ", "))
	}
	return lacks
}

// grants are those of Grants that give what is lacking.
func (a access) grants(role string) []string {
	var needed []string
	for i, has := range []bool{a.replication, a.stats, a.schema, len(a.functions) == 0} {
		if !has {
			needed = append(needed, Grants(role)[i])
		}
	}
	return needed
}

func (s *Session) check(ctx context.Context, c *pgx.Conn) error {
	a, err := readAccess(ctx, c)
	if err != nil {
		return err
	}
	if err := samePID(c, a.pid); err != nil {
		return err
	}
	if lacks := a.lacks(); len(lacks) > 0 {
		return &privilegeError{lacks: lacks}
	}
	return nil
}

// samePID finds a connection pooler: it answers the startup packet itself, with
// a process number of its own making, and may give the next query to another
// backend, where our settings do not hold.
func samePID(c *pgx.Conn, pid uint32) error {
	if told := c.PgConn().PID(); told != pid {
		return &endpointError{fmt.Sprintf(
			"the session was opened as process %d but process %d answers, so a connection pooler stands between", told, pid)}
	}
	return nil
}
