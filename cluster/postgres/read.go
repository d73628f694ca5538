package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Protocol is the version of the extension's contract that this program speaks.
const Protocol = 1

// Read is one complete read of one node.
type Read struct {
	Node       cluster.Node
	Slots      []cluster.Slot
	Walsenders []cluster.Walsender
}

const nodeSQL = `
SELECT pg_backend_pid(), current_setting('server_version_num')::integer,
       (SELECT x.extversion FROM pg_extension x WHERE x.extname = 'slotkeeper'),
       n.system_identifier, n.timeline, n.history_timelines, n.history_lsns::text[], n.in_recovery,
       n.insert_lsn::text, n.flush_lsn::text, n.receive_lsn::text, n.replay_lsn::text,
       COALESCE((` + sharedSinceSQL + `), n.started), n.wal_level, COALESCE(n.primary_slot_name, ''), n.hot_standby_feedback,
       n.max_slots, n.used_slots, n.clock,
       (n.fence).scope, (n.fence).store, (n.fence).epoch, (n.fence).owner,
       (n.fence).system_identifier, (n.fence).timeline,
       n.heartbeat, n.library, n.protocol, n.held_for_all_since,
       COALESCE(current_setting('sync_replication_slots', true)::boolean, false),
       COALESCE(current_setting('synchronized_standby_slots', true), ''),
       COALESCE(extract(epoch FROM current_setting('idle_replication_slot_timeout', true)::interval)::bigint, 0),
       (age('3'::xid)::bigint + 3 + 4294967296) % 4294967296,
       current_setting('autovacuum_freeze_max_age')::bigint,
       w.pid, w.gid, w.xid, w.started
  FROM slotkeeper.node() AS n
  LEFT JOIN LATERAL (` + oldestWriterSQL + `) AS w ON true`

// sharedSinceSQL is since when the server's shared memory lives. The postmaster, whose
// start node() tells, stays where a backend's crash makes the server start anew, and
// with it every slot from its file; the checkpointer does not.
const sharedSinceSQL = `SELECT max(a.backend_start) FROM pg_stat_get_activity(NULL) AS a WHERE a.backend_type = 'checkpointer'`

// oldestWriterSQL gives one row at most. An open transaction with an id is a
// backend's or a prepared one; on a standby there is none. Which of two is the
// older is asked by age(): ids are circular.
const oldestWriterSQL = `
	SELECT o.pid, o.gid, o.xid, o.started
	  FROM (SELECT a.pid, '' AS gid, a.backend_xid AS xid, a.xact_start AS started
	          FROM pg_stat_get_activity(NULL) AS a WHERE a.backend_xid IS NOT NULL
	        UNION ALL
	        SELECT 0, p.gid, p.transaction, p.prepared FROM pg_prepared_xacts AS p) AS o
	 WHERE NOT n.in_recovery
	 ORDER BY age(o.xid) DESC LIMIT 1`

const slotsSQL = `
SELECT s.name::text, s.kind, COALESCE(s.plugin::text, ''), COALESCE(s.database::text, ''), COALESCE(s.database_oid, 0),
       s.temporary, s.two_phase, s.two_phase_at::text, s.restart_lsn::text, s.confirmed_flush_lsn::text,
       s.xmin, s.catalog_xmin, s.effective_catalog_xmin,
       COALESCE(s.invalidated, ''), COALESCE(s.active_pid, 0),
       (s.incarnation).inode, (s.incarnation).birth, COALESCE(s.wal_ok, false), COALESCE(s.snapshot, ''), s.saved,
       (s.marker).version, (s.marker).kind, (s.marker).scope, (s.marker).store, (s.marker).system_identifier,
       (s.marker).timeline, (s.marker).generation,
       ((s.marker).source).inode, ((s.marker).source).birth, (s.marker).way, (s.marker).witness::text,
       (s.marker).unheld_before, (s.marker).held_since, (s.marker).held_from::text,
       s.failover, s.synced
  FROM slotkeeper.slots() AS s
 ORDER BY 1`

const walsendersSQL = `
SELECT w.pid, COALESCE(w.application_name, ''), COALESCE(host(w.client_addr) || ' port ' || w.client_port, ''), w.state, w.sent_lsn::text, w.flush_lsn::text, w.replay_lsn::text
  FROM pg_stat_replication AS w
 ORDER BY w.pid`

// Read reads the node, its slots and its walsenders in one round trip. It gives
// all of it or an error, never a part. It fails with ExtensionUnavailable
// where the extension's SQL objects, its library and this program do not fit
// together.
func (s *Session) Read(ctx context.Context) (Read, error) {
	var r Read
	err := s.do(ctx, attempt{budget: s.opts.QueryTimeout, readOnly: true}, func(ctx context.Context, c *pgx.Conn) error {
		var err error
		r, err = readNode(ctx, c)
		return err
	})
	if err != nil {
		return Read{}, err
	}
	return r, nil
}

func readNode(ctx context.Context, c *pgx.Conn) (r Read, err error) {
	batch := &pgx.Batch{}
	batch.Queue(nodeSQL)
	batch.Queue(slotsSQL)
	batch.Queue(walsendersSQL)
	results := c.SendBatch(ctx, batch)
	defer func() {
		if cerr := results.Close(); err == nil && cerr != nil {
			r, err = Read{}, fmt.Errorf("reading the node: %w", cerr)
		}
	}()

	var node nodeRow
	if err := results.QueryRow().Scan(node.fields()...); err != nil {
		return Read{}, fmt.Errorf("reading the node: %w", err)
	}
	if err := samePID(c, node.pid); err != nil {
		return Read{}, err
	}
	if err := node.fits(); err != nil {
		return Read{}, err
	}
	if r.Node, err = node.convert(); err != nil {
		return Read{}, fmt.Errorf("reading the node: %w", err)
	}
	rows, err := results.Query()
	if err != nil {
		return Read{}, fmt.Errorf("reading slots: %w", err)
	}
	if r.Slots, err = scanSlots(rows); err != nil {
		return Read{}, fmt.Errorf("reading slots: %w", err)
	}
	rows, err = results.Query()
	if err != nil {
		return Read{}, fmt.Errorf("reading pg_stat_replication: %w", err)
	}
	if r.Walsenders, err = scanWalsenders(rows, r.Slots); err != nil {
		return Read{}, fmt.Errorf("reading pg_stat_replication: %w", err)
	}
	return r, nil
}

func scanWalsenders(rows pgx.Rows, slots []cluster.Slot) ([]cluster.Walsender, error) {
	slotOf := map[int32]string{}
	for _, s := range slots {
		if s.ActivePID != 0 {
			slotOf[s.ActivePID] = s.Name
		}
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (cluster.Walsender, error) {
		var w cluster.Walsender
		var state, sent, flush, replay *string
		if err := row.Scan(&w.PID, &w.ApplicationName, &w.Client, &state, &sent, &flush, &replay); err != nil {
			return w, err
		}
		// A walsender always has a state; the server hides it from roles
		// without pg_read_all_stats.
		if state == nil {
			return w, &privilegeError{lacks: []string{"membership in pg_monitor"}}
		}
		w.State, w.SlotName = *state, slotOf[w.PID]
		var l lsns
		w.Sent, w.Flush, w.Replay = l.opt(sent), l.opt(flush), l.opt(replay)
		return w, l.err
	})
}
