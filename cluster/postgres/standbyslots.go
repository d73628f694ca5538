package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// SetStandbySlots sets synchronized_standby_slots of the node (17 and later) to
// these slots, by ALTER SYSTEM, and has the server read it. The one outcome is set,
// no_privilege with the GRANTs that are missing, or retry where the server
// refuses the list.
func (s *Session) SetStandbySlots(ctx context.Context, names []string) ([]cluster.Outcome, error) {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "'" + strings.ReplaceAll(name, "'", "''") + "'"
	}
	if len(quoted) == 0 {
		quoted = []string{"''"}
	}
	statements := []string{
		// ALTER SYSTEM may not stand beside anything else, and takes no parameters.
		"ALTER SYSTEM SET synchronized_standby_slots = " + strings.Join(quoted, ", "),
		"SELECT pg_catalog.pg_reload_conf()",
	}
	var role string
	err := s.do(ctx, attempt{budget: s.opts.QueryTimeout}, func(ctx context.Context, c *pgx.Conn) error {
		role = c.Config().User
		for _, sql := range statements {
			if _, err := c.Exec(ctx, sql); err != nil {
				return fmt.Errorf("setting synchronized_standby_slots: %w", err)
			}
		}
		return nil
	})
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return []cluster.Outcome{{Code: cluster.CodeSet}}, nil
	case errors.As(err, &pg) && pg.Code == codeNoPrivilege:
		return []cluster.Outcome{{Code: cluster.CodeNoPrivilege, Detail: pg.Message,
			Hint: "on the primary, as superuser: " + strings.Join(StandbySlotGrants(role), " ")}}, nil
	case errors.As(err, &pg) && slices.Contains([]string{"22023", "55P02", "55000"}, pg.Code):
		return []cluster.Outcome{{Code: cluster.CodeRetry, Detail: strings.TrimSuffix(pg.Message+": "+pg.Detail, ": "), Hint: pg.Hint}}, nil
	}
	return nil, err
}
