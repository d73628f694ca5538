package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// inspectSQL uses nothing that a plain role may not see.
const inspectSQL = `
SELECT pg_backend_pid(), current_setting('server_version_num')::integer, pg_is_in_recovery(),
       current_database()::text, current_user::text,
       (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user),
       COALESCE((SELECT x.extversion FROM pg_extension x WHERE x.extname = 'slotkeeper'), ''),
       COALESCE((SELECT a.default_version FROM pg_available_extensions a WHERE a.name = 'slotkeeper'), ''),
       ARRAY(SELECT g.name FROM pg_settings g WHERE g.name = ANY ($1) ORDER BY g.name),
       ARRAY(SELECT g.setting FROM pg_settings g WHERE g.name = ANY ($1) ORDER BY g.name),
       (SELECT age(h.catalog_xmin)::bigint FROM pg_replication_slots h WHERE h.slot_name = '` + cluster.HoldName + `')`

// inspected are the settings that an Inspection has, as far as the server knows them.
var inspected = []string{
	"wal_level", "max_replication_slots", "max_slot_wal_keep_size", "hot_standby_feedback", "primary_slot_name",
	"autovacuum_freeze_max_age",
}

// Inspect asks what any role may know, on a connection of its own: it answers
// also where the role lacks what Read needs, or the extension is not there.
func (s *Session) Inspect(ctx context.Context) (cluster.Inspection, error) {
	i, err := s.inspect(ctx)
	if err != nil {
		return cluster.Inspection{}, s.fault(err)
	}
	return i, nil
}

func (s *Session) inspect(ctx context.Context) (i cluster.Inspection, err error) {
	if err := s.take(ctx); err != nil {
		return i, err
	}
	config, err := s.opts.config(s.member)
	if err != nil {
		<-s.tokens
		return i, err
	}
	c, err := s.dialNewer(ctx, config)
	if err != nil {
		<-s.tokens
		return i, err
	}
	defer s.discard(c)
	err = bounded(ctx, c.Conn, s.opts.QueryTimeout, func(ctx context.Context, c *pgx.Conn) error {
		i, err = inspection(ctx, c)
		return err
	})
	return i, err
}

func inspection(ctx context.Context, c *pgx.Conn) (cluster.Inspection, error) {
	var i cluster.Inspection
	var pid uint32
	var names, values []string
	var age *int64
	var superuser bool
	row := c.QueryRow(ctx, inspectSQL, pgx.QueryExecModeExec, inspected)
	err := row.Scan(&pid, &i.ServerVersion, &i.InRecovery, &i.Database, &i.Role, &superuser, &i.Script, &i.Available, &names, &values, &age)
	if err != nil {
		return i, fmt.Errorf("inspecting the server: %w", err)
	}
	if err := samePID(c, pid); err != nil {
		return i, err
	}
	i.Settings = make(map[string]string, len(names))
	for n, name := range names {
		i.Settings[name] = values[n]
	}
	if age != nil {
		i.HoldAge = cluster.Some(*age)
	}
	a, err := readAccess(ctx, c)
	if err != nil {
		return i, err
	}
	i.Lacks, i.Grants = a.lacks(), a.grants(i.Role)
	if i.Script == "" && !superuser {
		i.Grants = append(i.Grants, objectGrants(i.Role)...)
	}
	return i, nil
}
