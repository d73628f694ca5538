package lab

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// StandbyOptions say how a standby is made.
type StandbyOptions struct {
	Feedback   bool              // hot_standby_feedback
	ApplyDelay time.Duration     // recovery_min_apply_delay, in whole milliseconds
	Settings   map[string]string // further settings of this node
}

// BaseBackup fills the node with a copy of upstream, as its standby, with a
// physical slot of its own there. It does not start it.
func (n *Node) BaseBackup(ctx context.Context, upstream *Node, options StandbyOptions) error {
	n.mu.Lock()
	for name, value := range options.Settings {
		n.settings[name] = value
	}
	if options.Feedback {
		n.settings["hot_standby_feedback"] = "on"
	}
	if options.ApplyDelay > 0 {
		n.settings["recovery_min_apply_delay"] = strconv.FormatInt(options.ApplyDelay.Milliseconds(), 10) + "ms"
	}
	n.mu.Unlock()
	// First of all: a checkpoint must not take the backup's WAL before
	// pg_basebackup has a slot of its own.
	if err := n.makeSlot(ctx, upstream); err != nil {
		return err
	}
	err := n.cluster.run(ctx, "pg_basebackup", "--pgdata="+n.data, "--host=127.0.0.1", "--port="+strconv.Itoa(upstream.port),
		"--username=postgres", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if err != nil {
		return fmt.Errorf("copying node %q to %q: %w", upstream.name, n.name, err)
	}
	return n.Follow(ctx, upstream)
}

// Follow makes the node a standby of upstream, which gets the node's physical
// slot unless it has it. A running standby goes over without a restart; a
// stopped node follows from its next start. Its WAL must not go beyond the
// point where upstream's timeline began.
func (n *Node) Follow(ctx context.Context, upstream *Node) error {
	if err := n.makeSlot(ctx, upstream); err != nil {
		return err
	}
	if !n.Running() {
		if err := n.write("standby.signal", ""); err != nil {
			return err
		}
	}
	return n.Set(ctx, map[string]string{
		// Of 17 and later the slot synchronization's own worker wants a database.
		"primary_conninfo":         fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres application_name=%s sslmode=disable", upstream.port, quoteConninfo(n.name)),
		"primary_slot_name":        n.SlotName(),
		"recovery_target_timeline": "latest",
	})
}

// makeSlot makes the node's physical slot on upstream where it is not there.
func (n *Node) makeSlot(ctx context.Context, upstream *Node) error {
	err := upstream.Exec(ctx, `SELECT pg_create_physical_replication_slot($1, true)
		WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)`, n.SlotName())
	if err != nil {
		return fmt.Errorf("making the slot of %q on %q: %w", n.name, upstream.name, err)
	}
	return nil
}

// Rewind takes a stopped former primary back to where upstream's timeline began
// (pg_rewind) and makes it a standby of it; Start it then.
func (n *Node) Rewind(ctx context.Context, upstream *Node) error {
	// The checkpoint must leave the WAL that the node will go on with.
	if err := n.makeSlot(ctx, upstream); err != nil {
		return err
	}
	// Before 16 pg_rewind looks for the source's timeline in its control file,
	// which a promotion brings up to date only with its checkpoint.
	if err := upstream.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("rewinding node %q to %q: %w", n.name, upstream.name, err)
	}
	err := n.cluster.run(ctx, "pg_rewind", "--target-pgdata="+n.data, "--no-sync", "--source-server="+upstream.Conninfo("", ""))
	if err != nil {
		return fmt.Errorf("rewinding node %q to %q: %w", n.name, upstream.name, err)
	}
	// It copied upstream's settings too; Follow writes this node's own again.
	return n.Follow(ctx, upstream)
}

// CurrentLSN is the end of what a primary has flushed.
func (n *Node) CurrentLSN(ctx context.Context) (cluster.LSN, error) {
	return n.lsn(ctx, "pg_current_wal_flush_lsn()")
}

// ReceivedLSN is the end of what a standby has received and flushed, by
// streaming or from files; 0 when there is nothing.
func (n *Node) ReceivedLSN(ctx context.Context) (cluster.LSN, error) {
	return n.lsn(ctx, "greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())")
}

// ReplayedLSN is the end of what a standby has replayed.
func (n *Node) ReplayedLSN(ctx context.Context) (cluster.LSN, error) {
	return n.lsn(ctx, "pg_last_wal_replay_lsn()")
}

func (n *Node) lsn(ctx context.Context, expression string) (cluster.LSN, error) {
	var text string
	if err := n.QueryRow(ctx, "SELECT coalesce("+expression+", '0/0')::text").Scan(&text); err != nil {
		return 0, err
	}
	return cluster.ParseLSN(text)
}

// Fork gives where a promoted node's timeline began; 0 on the first timeline.
func (n *Node) Fork(ctx context.Context) (cluster.LSN, error) {
	conn, err := pgconn.Connect(ctx, n.Conninfo("", "")+" replication=database")
	if err != nil {
		return 0, fmt.Errorf("connecting to node %q: %w", n.name, err)
	}
	defer closeQuickly(conn)
	system, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		return 0, fmt.Errorf("asking node %q for its timeline: %w", n.name, err)
	}
	if system.Timeline == 1 {
		return 0, nil
	}
	history, err := pglogrepl.TimelineHistory(ctx, conn, system.Timeline)
	if err != nil {
		return 0, fmt.Errorf("asking node %q for the history of timeline %d: %w", n.name, system.Timeline, err)
	}
	// One line per earlier timeline: number, where it ended, why.
	lines := strings.Split(strings.TrimSpace(string(history.Content)), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the history of timeline %d: unexpected line %q", system.Timeline, lines[len(lines)-1])
	}
	return cluster.ParseLSN(fields[1])
}

// WaitReplay waits until a standby has replayed up to an LSN.
func (n *Node) WaitReplay(ctx context.Context, target cluster.LSN) error {
	return n.DB("").WaitTrue(ctx, 10*time.Millisecond, fmt.Sprintf("node %q to replay %s", n.name, target),
		"SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", target.String())
}

// WaitCatchup waits until a standby has replayed all that a primary has flushed now.
func (n *Node) WaitCatchup(ctx context.Context, primary *Node) error {
	target, err := primary.CurrentLSN(ctx)
	if err != nil {
		return err
	}
	return n.WaitReplay(ctx, target)
}

// WaitReceived waits until a standby has received, replayed or not, all that a
// primary has flushed now.
func (n *Node) WaitReceived(ctx context.Context, primary *Node) error {
	target, err := primary.CurrentLSN(ctx)
	if err != nil {
		return err
	}
	return n.DB("").WaitTrue(ctx, 10*time.Millisecond, fmt.Sprintf("node %q to receive %s", n.name, target),
		"SELECT coalesce(pg_last_wal_receive_lsn() >= $1::text::pg_lsn, false)", target.String())
}

// WaitStreaming waits until a standby streams from its upstream.
func (n *Node) WaitStreaming(ctx context.Context) error {
	return n.DB("").WaitTrue(ctx, 20*time.Millisecond, fmt.Sprintf("node %q to stream", n.name),
		"SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
}
