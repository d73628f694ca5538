package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Proof is where decoding from a slot's restart_lsn becomes consistent.
type Proof struct {
	Way      string                   // file, nothing_running, phases or later_file; "" where there is no such point before confirmed_flush_lsn
	ProvenAt cluster.Opt[cluster.LSN] // absent where there is none; of later_file: the file's position
}

// walkPause is the wait before a walk that found no new WAL is tried again.
const walkPause = 50 * time.Millisecond

// ConsistentPoint walks the node's own WAL from p.Restart towards p.Confirmed,
// maxBytes a call, until it is proven, or proven that it cannot be, or ctx ends.
// It reads only; it is what the gate, verify and tests ask.
func (s *Session) ConsistentPoint(ctx context.Context, p cluster.Position, maxBytes int64) (Proof, error) {
	var resume *string
	for {
		proof, next, err := s.walk(ctx, p, resume, maxBytes)
		if err != nil || next == nil {
			return proof, err
		}
		if resume != nil && *resume == *next {
			select {
			case <-ctx.Done():
				return Proof{}, s.fault(fmt.Errorf("walking the WAL from %s: it ends before %s: %w", p.Restart, p.Confirmed, ctx.Err()))
			case <-time.After(walkPause):
			}
		}
		resume = next
	}
}

func (s *Session) walk(ctx context.Context, p cluster.Position, resume *string, maxBytes int64) (proof Proof, next *string, err error) {
	const sql = `SELECT c.way, c.proven_at::text, c.resume
		FROM slotkeeper.consistent_point($1::text::pg_lsn, $2::text::pg_lsn, $3::text, $4::bigint) AS c`
	err = s.do(ctx, attempt{budget: s.opts.QueryTimeout, readOnly: true}, func(ctx context.Context, c *pgx.Conn) error {
		var way, at *string
		row := c.QueryRow(ctx, sql, p.Restart.String(), p.Confirmed.String(), resume, maxBytes)
		if err := row.Scan(&way, &at, &next); err != nil {
			return fmt.Errorf("walking the WAL from %s: %w", p.Restart, err)
		}
		var l lsns
		proof = Proof{Way: str(way), ProvenAt: l.opt(at)}
		return l.err
	})
	return proof, next, err
}
