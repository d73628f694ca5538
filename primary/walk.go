package primary

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

// Walk is one walk over the primary's own WAL.
type Walk struct {
	Position cluster.Position
	Resume   string // where it goes on, "" for a new one

	postgres.Proof
	File cluster.Opt[[]byte] // of way later_file: the snapshot file at ProvenAt
}

// leastWalk is what one of several walks may read at least, so that each of
// them comes on.
const leastWalk = 1 << 20

// Walks asks for all walks in one round trip, which share maxBytes; the answers
// are in their order. An answer with a Resume has not ended, one with neither
// Way nor Resume proved nothing. The file of way later_file comes along, where
// it is still there.
func Walks(ctx context.Context, s *postgres.Session, walks []Walk, maxBytes int64) ([]Walk, error) {
	const sql = `SELECT w.at, c.way, c.proven_at::text, c.resume,
	       CASE c.way WHEN 'later_file' THEN slotkeeper.snapshot(c.proven_at) END
	  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(restart, confirmed, resume, at),
	       LATERAL slotkeeper.consistent_point(w.restart::pg_lsn, w.confirmed::pg_lsn, w.resume, $4::bigint) AS c
	 ORDER BY w.at`
	if len(walks) == 0 {
		return nil, nil
	}
	restarts, confirmeds, resumes := make([]string, len(walks)), make([]string, len(walks)), make([]*string, len(walks))
	for i := range walks {
		restarts[i], confirmeds[i] = walks[i].Position.Restart.String(), walks[i].Position.Confirmed.String()
		if walks[i].Resume != "" {
			resumes[i] = &walks[i].Resume
		}
	}
	answers := make([]Walk, len(walks))
	err := s.Query(ctx, "proving slots", sql, func(rows pgx.Rows) error {
		at, a, err := scanWalk(rows)
		if err != nil {
			return err
		}
		a.Position = walks[at-1].Position
		answers[at-1] = a
		return nil
	}, restarts, confirmeds, resumes, max(maxBytes/int64(len(walks)), leastWalk))
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// scanWalk gives the walk's place among those asked for, from 1 on.
func scanWalk(rows pgx.Rows) (at int64, a Walk, err error) {
	var way, provenAt, resume *string
	var file []byte
	if err := rows.Scan(&at, &way, &provenAt, &resume, &file); err != nil {
		return at, a, err
	}
	if way != nil {
		a.Way = *way
	}
	if resume != nil {
		a.Resume = *resume
	}
	if provenAt != nil {
		l, err := cluster.ParseLSN(*provenAt)
		if err != nil {
			return at, a, err
		}
		a.ProvenAt = cluster.Some(l)
	}
	if file != nil {
		a.File = cluster.Some(file)
	}
	return at, a, nil
}
