package primary

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

// failoverPatience is how long a slot is waited for: the command waits without
// an end while somebody has it, and the cycle waits with it.
const failoverPatience = 300 * time.Millisecond

// SetFailover sets the failover flag of logical slots (17 and later) by the
// replication command ALTER_REPLICATION_SLOT, on a connection that ends with
// it. An outcome per slot: set, or retry with the reason where it was not to be
// had in time or the server refused. After one that was not to be had the others
// are not tried. The node must be on the fence's system and timeline; the server
// itself knows of no fence, so the caller shows it right before.
func SetFailover(ctx context.Context, s *postgres.Session, f cluster.Fence, names []string) ([]cluster.Outcome, error) {
	var outcomes []cluster.Outcome
	blocked := ""
	err := s.Replication(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		if err := sameServer(ctx, c, f); err != nil {
			return err
		}
		for _, name := range names {
			o := cluster.Outcome{Name: name, Code: cluster.CodeRetry, Detail: blocked}
			if blocked == "" {
				o = setFailover(ctx, c, name)
			}
			if c.IsClosed() {
				blocked = fmt.Sprintf("slot %s was not to be had, and this one was not tried", name)
			}
			outcomes = append(outcomes, o)
		}
		return nil
	})
	if err != nil && len(outcomes) < len(names) {
		return nil, err
	}
	return outcomes, nil
}

func sameServer(ctx context.Context, c *pgconn.PgConn, f cluster.Fence) error {
	is, err := pglogrepl.IdentifySystem(ctx, c)
	if err != nil {
		return fmt.Errorf("setting the failover flag: %w", err)
	}
	if is.SystemID != f.SystemID.String() || cluster.Timeline(is.Timeline) != f.Timeline {
		return fmt.Errorf("setting the failover flag: the server is of system %s on timeline %d, not of %s on %d", is.SystemID, is.Timeline, f.SystemID, f.Timeline)
	}
	return nil
}

func setFailover(ctx context.Context, c *pgconn.PgConn, name string) cluster.Outcome {
	ctx, cancel := context.WithTimeout(ctx, failoverPatience)
	defer cancel()
	o := cluster.Outcome{Name: name, Code: cluster.CodeSet}
	_, err := c.Exec(ctx, "ALTER_REPLICATION_SLOT "+pgx.Identifier{name}.Sanitize()+" (FAILOVER true)").ReadAll()
	var pg *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &pg):
		o.Code, o.Detail, o.Hint = cluster.CodeRetry, pg.Message, pg.Hint
	case ctx.Err() != nil:
		o.Code, o.Detail = cluster.CodeRetry, fmt.Sprintf("the slot was not to be had within %s: somebody is using it", failoverPatience)
	default:
		o.Code, o.Detail = cluster.CodeRetry, err.Error()
	}
	return o
}
