package primary

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

// System is what IDENTIFY_SYSTEM answers.
type System struct {
	SystemID cluster.SystemID
	Timeline cluster.Timeline
	Flush    cluster.LSN // on a standby the replay position
}

// IdentifySystem asks by the replication protocol who the server is. It needs
// no extension.
func IdentifySystem(ctx context.Context, s *postgres.Session) (System, error) {
	var out System
	err := s.Replication(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		r, err := pglogrepl.IdentifySystem(ctx, c)
		if err != nil {
			return fmt.Errorf("identifying the system: %w", err)
		}
		out.SystemID, err = cluster.ParseSystemID(r.SystemID)
		if err != nil {
			return fmt.Errorf("identifying the system: %w", err)
		}
		out.Timeline, out.Flush = cluster.Timeline(r.Timeline), cluster.LSN(r.XLogPos)
		return nil
	})
	if err != nil {
		return System{}, err
	}
	return out, nil
}

// TimelineHistory asks for the history file of a timeline and gives where each
// earlier one ended, oldest first. Timeline 1 has no history.
func TimelineHistory(ctx context.Context, s *postgres.Session, tli cluster.Timeline) ([]cluster.Fork, error) {
	if tli < 1 || tli > 1<<31-1 {
		return nil, fmt.Errorf("reading the history of timeline %d: want a timeline from 1 to %d", tli, 1<<31-1)
	}
	if tli == 1 {
		return nil, nil
	}
	var forks []cluster.Fork
	err := s.Replication(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		r, err := pglogrepl.TimelineHistory(ctx, c, int32(tli))
		if err != nil {
			return fmt.Errorf("reading the history of timeline %d: %w", tli, err)
		}
		forks, err = ParseHistory(r.Content, tli)
		return err
	})
	if err != nil {
		return nil, err
	}
	return forks, nil
}
