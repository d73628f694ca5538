package standby

import (
	"context"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

const applySQL = `FROM slotkeeper.apply(` + postgres.FenceSQL + `,
	ARRAY(SELECT ROW(c.name::name, c.plugin::name, c.database_oid::oid, c.two_phase, c.two_phase_at::pg_lsn,
	                 c.restart_lsn::pg_lsn, c.confirmed_flush_lsn::pg_lsn, c.catalog_xmin::xid, c.snapshot,
	                 ROW(c.inode, c.birth)::slotkeeper.incarnation, c.resume,
	                 c.snapshot_at::pg_lsn)::slotkeeper.change
	        FROM unnest($7::text[], $8::text[], $9::text[], $10::boolean[], $11::text[], $12::text[], $13::text[],
	                    $14::text[], $15::bytea[], $16::text[], $17::timestamptz[], $18::text[], $19::text[]) WITH ORDINALITY
	             AS c(name, plugin, database_oid, two_phase, two_phase_at, restart_lsn, confirmed_flush_lsn,
	                  catalog_xmin, snapshot, inode, birth, resume, snapshot_at, at)
	       ORDER BY c.at),
	$20::bigint)`

// Apply asks the standby to make or move mirrors, in one call: each is proven
// by walking at most maxBytes of the standby's own WAL before it is shown to
// anyone. It gives a row per change; one change's trouble never ends the
// others. The call may take the session's QueryTimeout for each change.
func Apply(ctx context.Context, s *postgres.Session, f cluster.Fence, changes []cluster.Change, maxBytes int64) ([]cluster.Outcome, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	args := append(postgres.FenceArgs(f), newColumns(changes).args()...)
	return s.Outcomes(ctx, "applying changes", len(changes), applySQL, append(args, maxBytes)...)
}

// ConsistentPoint walks the standby's own WAL from a position that it has
// replayed; see postgres.Session.ConsistentPoint.
func ConsistentPoint(ctx context.Context, s *postgres.Session, p cluster.Position, maxBytes int64) (postgres.Proof, error) {
	return s.ConsistentPoint(ctx, p, maxBytes)
}
