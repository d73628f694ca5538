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

func (s *Session) check(ctx context.Context, c *pgx.Conn) error {
	var pid uint32
	var replication, stats, schema bool
	var functions, settings []string
	row := c.QueryRow(ctx, checkSQL, pgx.QueryExecModeExec)
	if err := row.Scan(&pid, &replication, &stats, &schema, &functions, &settings); err != nil {
		return fmt.Errorf("looking at the new connection: %w", err)
	}
	if err := samePID(c, pid); err != nil {
		return err
	}
	var lacks []string
	if !replication {
		lacks = append(lacks, "the REPLICATION attribute")
	}
	if !stats {
		lacks = append(lacks, "membership in pg_monitor")
	}
	if !schema {
		lacks = append(lacks, "USAGE on schema slotkeeper")
	}
	if len(functions) > 0 {
		lacks = append(lacks, "EXECUTE on "+strings.Join(functions, ", "))
	}
	if len(lacks) > 0 {
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
