package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// FenceSQL builds a slotkeeper.fence of the first six parameters, which
// FenceArgs gives. Composites are built on the server from plain parameters, so
// that no type of the extension needs to be known to the driver.
const FenceSQL = `ROW($1::text, $2::text, $3::bigint, $4::text, $5::text, $6::bigint)::slotkeeper.fence`

// FenceArgs gives the parameters of FenceSQL.
func FenceArgs(f cluster.Fence) []any {
	return []any{f.Scope, f.Store, int64(f.Epoch), f.Owner, f.SystemID.String(), int64(f.Timeline)}
}

// RaiseFence shows the fence to the node, which keeps the highest epoch. It
// answers raised, same, fenced or foreign_epoch.
func (s *Session) RaiseFence(ctx context.Context, f cluster.Fence) (string, error) {
	return s.fenceCall(ctx, "raising the fence", `SELECT slotkeeper.raise_fence(`+FenceSQL+`)`, f)
}

// RemoveFence takes the node's fence file away. It answers removed, absent,
// fenced or foreign_epoch.
func (s *Session) RemoveFence(ctx context.Context, f cluster.Fence) (string, error) {
	return s.fenceCall(ctx, "removing the fence", `SELECT slotkeeper.remove_fence(`+FenceSQL+`)`, f)
}

func (s *Session) fenceCall(ctx context.Context, what, sql string, f cluster.Fence) (string, error) {
	var answer string
	err := s.do(ctx, attempt{budget: s.opts.QueryTimeout}, func(ctx context.Context, c *pgx.Conn) error {
		if err := c.QueryRow(ctx, sql, FenceArgs(f)...).Scan(&answer); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	return answer, err
}

// Hold asks the node's slotkeeper_hold to pin exactly wants, beside the mirrors
// on the node, which always count; no wants leave its catalog_xmin as it is.
// wal is the restart_lsn for slotkeeper_wal: absent leaves it alone, zero drops
// it; only a standby takes another value.
func (s *Session) Hold(ctx context.Context, f cluster.Fence, generation int64, wants []cluster.Want, wal cluster.Opt[cluster.LSN]) ([]cluster.Outcome, error) {
	const sql = `FROM slotkeeper.hold(` + FenceSQL + `, $7::bigint,
		ARRAY(SELECT ROW(w.xmin::xid, w.slot::name,
		                 CASE WHEN w.inode IS NULL THEN NULL ELSE ROW(w.inode, w.birth)::slotkeeper.incarnation END)::slotkeeper.want
		        FROM unnest($8::text[], $9::text[], $10::text[], $11::timestamptz[]) WITH ORDINALITY AS w(xmin, slot, inode, birth, at)
		       ORDER BY w.at),
		$12::text::pg_lsn)`
	xmins := make([]string, len(wants))
	slots := make([]*string, len(wants))
	sources := make([]cluster.Opt[cluster.Incarnation], len(wants))
	for i, w := range wants {
		xmins[i] = w.CatalogXmin.String()
		if w.Slot != "" {
			slots[i] = &w.Slot
			sources[i] = cluster.Some(w.Source)
		}
	}
	inodes, births := IncarnationArgs(sources)
	args := append(FenceArgs(f), generation, xmins, slots, inodes, births, LSNArg(wal))
	return s.Outcomes(ctx, "holding", 1, sql, args...)
}

// Drop drops those of names that are ours and unused on this node.
func (s *Session) Drop(ctx context.Context, f cluster.Fence, names []string) ([]cluster.Outcome, error) {
	const sql = `FROM slotkeeper.drop(` + FenceSQL + `, $7::text[]::name[])`
	return s.Outcomes(ctx, "dropping slots", 1, sql, append(FenceArgs(f), NamesArg(names))...)
}

// Stamp writes the generation into the markers of the named mirrors.
func (s *Session) Stamp(ctx context.Context, f cluster.Fence, generation int64, names []string) ([]cluster.Outcome, error) {
	const sql = `FROM slotkeeper.stamp(` + FenceSQL + `, $7::bigint, $8::text[]::name[])`
	return s.Outcomes(ctx, "stamping mirrors", 1, sql, append(FenceArgs(f), generation, NamesArg(names))...)
}

// IncarnationArgs gives the inodes and birth times of incarnations as two
// arrays for unnest; both are NULL where there is no incarnation.
func IncarnationArgs(all []cluster.Opt[cluster.Incarnation]) (inodes []*string, births []*time.Time) {
	inodes, births = make([]*string, len(all)), make([]*time.Time, len(all))
	for i, a := range all {
		if a.OK {
			inode := fmt.Sprint(a.V.Inode)
			inodes[i], births[i] = &inode, a.V.Birth.Ptr()
		}
	}
	return inodes, births
}

// LSNArg gives a position as a parameter of type text, NULL where absent.
func LSNArg(l cluster.Opt[cluster.LSN]) *string {
	if !l.OK {
		return nil
	}
	text := l.V.String()
	return &text
}

// NamesArg gives names as an array; none are an empty one, not NULL.
func NamesArg(names []string) []string {
	return append([]string{}, names...)
}
