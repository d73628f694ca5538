package standby

import (
	"context"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

// EndSessions ends the idle sessions of applications that began before the
// standby's hold. An application is named as its sessions' application_name begins.
func EndSessions(ctx context.Context, s *postgres.Session, f cluster.Fence, applications []string) ([]cluster.Outcome, error) {
	const sql = `FROM slotkeeper.end_sessions(` + postgres.FenceSQL + `, $7::text)`
	var all []cluster.Outcome
	for _, application := range applications {
		rows, err := s.Outcomes(ctx, "ending old sessions", 1, sql, append(postgres.FenceArgs(f), application)...)
		if err != nil {
			return all, err
		}
		all = append(all, rows...)
	}
	return all, nil
}
