package primary

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

// Snapshots fetches the snapshot files at exactly these positions, in one round
// trip. A position without a valid file is left out: the file comes when
// decoding passes there, or never.
func Snapshots(ctx context.Context, s *postgres.Session, at []cluster.LSN) (map[cluster.LSN][]byte, error) {
	const sql = `SELECT p.at, slotkeeper.snapshot(p.at::pg_lsn) FROM unnest($1::text[]) AS p(at)`
	distinct := slices.Compact(slices.Sorted(slices.Values(at)))
	texts := make([]string, len(distinct))
	for i, l := range distinct {
		texts[i] = l.String()
	}
	files := make(map[cluster.LSN][]byte, len(distinct))
	if len(distinct) == 0 {
		return files, nil
	}
	err := s.Query(ctx, "fetching snapshot files", sql, func(rows pgx.Rows) error {
		var text string
		var file []byte
		if err := rows.Scan(&text, &file); err != nil {
			return err
		}
		l, err := cluster.ParseLSN(text)
		if err != nil {
			return err
		}
		if file != nil {
			files[l] = file
		}
		return nil
	}, texts)
	if err != nil {
		return nil, err
	}
	return files, nil
}

// Mark marks the named logical slots, each of the given incarnation, as
// originals that slotkeeper manages, so that they are known as ours after a
// demotion. names and incarnations go together by index.
func Mark(ctx context.Context, s *postgres.Session, f cluster.Fence, names []string, incarnations []cluster.Incarnation) ([]cluster.Outcome, error) {
	if len(names) != len(incarnations) {
		return nil, fmt.Errorf("marking slots: %d names and %d incarnations, want as many of each", len(names), len(incarnations))
	}
	const sql = `FROM slotkeeper.mark(` + postgres.FenceSQL + `, $7::text[]::name[],
		ARRAY(SELECT ROW(i.inode, i.birth)::slotkeeper.incarnation
		        FROM unnest($8::text[], $9::timestamptz[]) WITH ORDINALITY AS i(inode, birth, at)
		       ORDER BY i.at))`
	given := make([]cluster.Opt[cluster.Incarnation], len(incarnations))
	for i, v := range incarnations {
		given[i] = cluster.Some(v)
	}
	inodes, births := postgres.IncarnationArgs(given)
	args := append(postgres.FenceArgs(f), postgres.NamesArg(names), inodes, births)
	return s.Outcomes(ctx, "marking slots", 1, sql, args...)
}

// ConsistentPoint walks the primary's own WAL from a slot's restart_lsn; see
// postgres.Session.ConsistentPoint.
func ConsistentPoint(ctx context.Context, s *postgres.Session, p cluster.Position, maxBytes int64) (postgres.Proof, error) {
	return s.ConsistentPoint(ctx, p, maxBytes)
}
