package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const outcomeColumns = `SELECT o.name::text, o.code, o.restart_lsn::text, o.confirmed_flush_lsn::text, o.catalog_xmin,
	o.way, o.proven_at::text, o.resume, o.detail, o.hint `

// Outcomes runs one of the extension's calls that give a row per slot. fromSQL
// is "FROM slotkeeper.call(...)"; what begins the text of an error. The call may
// take QueryTimeout for each of weight slots that it works on one after the other.
func (s *Session) Outcomes(ctx context.Context, what string, weight int, fromSQL string, args ...any) ([]cluster.Outcome, error) {
	var all []cluster.Outcome
	budget := s.opts.QueryTimeout * time.Duration(max(1, weight))
	err := s.do(ctx, attempt{budget: budget}, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, outcomeColumns+fromSQL+" AS o", args...)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if all, err = pgx.CollectRows(rows, s.outcome); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (s *Session) outcome(row pgx.CollectableRow) (cluster.Outcome, error) {
	o := cluster.Outcome{Node: s.member.Name}
	var code string
	var restart, confirmed, way, provenAt, resume, detail, hint *string
	var xmin *uint32
	err := row.Scan(&o.Name, &code, &restart, &confirmed, &xmin, &way, &provenAt, &resume, &detail, &hint)
	if err != nil {
		return o, err
	}
	var l lsns
	o.Code, o.ProvenAt = cluster.Code(code), l.opt(provenAt)
	o.Way, o.Resume, o.Detail, o.Hint = str(way), str(resume), str(detail), str(hint)
	// Our physical slots have only some of the fields; the others stay zero.
	if restart != nil || confirmed != nil || xmin != nil {
		o.Mirror = cluster.Some(cluster.Position{
			Restart: l.opt(restart).Or(0), Confirmed: l.opt(confirmed).Or(0), CatalogXmin: optXID(xmin).Or(0),
		})
	}
	if l.err != nil {
		return o, fmt.Errorf("slot %q: %w", o.Name, l.err)
	}
	return o, nil
}
