package chaos

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// faults are all kinds, in a fixed order: what a seed chooses hangs on it.
var faults []fault

func init() { // the table names functions that use it
	faults = []fault{
		{"primary killed", 4, endPrimary((*world).killNode)},
		{"primary stopped at once", 3, endPrimary((*world).stopImmediate)},
		{"primary restarted", 3, endPrimary((*world).stopFast)},
		{"backend killed", 5, killBackend},
		{"standby stopped", 5, stopStandby},
		{"standby frozen", 3, freezeStandby},
		{"postmaster frozen", 3, freezePostmaster},
		{"walreceiver frozen", 4, freezeWalreceiver},
		{"replay paused", 5, pauseReplay},
		{"feedback toggled", 2, toggleFeedback},
		{"leader frozen", 6, stopDaemon},
		{"leader killed", 5, killDaemon},
		{"controllers frozen", 2, stopDaemons},
		{"lease revoked", 4, revokeLease},
		{"etcd member killed", 3, killEtcdMember},
		{"etcd member isolated", 3, isolateEtcdMember},
		{"etcd down", 3, killEtcd},
		{"hold dropped", 6, dropHold},
		{"mirror dropped", 5, dropMirror},
		{"slot created or dropped", 5, churnSlot},
		{"slot recreated", 5, recreateSlot},
		{"database created or dropped", 5, churnDatabase},
		{"catalogs churned", 4, churnCatalogs},
		{"xids burnt", 3, burnXids},
		{"checkpoints", 4, checkpoints},
		{"promotion", 12, (*world).promote},
	}
}

func (w *world) notDone(c choice, why error) {
	w.report.notDone[c.fault.name]++
	w.say("  not done: %v", why)
}

func (w *world) killNode(n *lab.Node) error      { return n.Kill(w.ctx) }
func (w *world) stopImmediate(n *lab.Node) error { return n.StopImmediate(w.ctx) }
func (w *world) stopFast(n *lab.Node) error      { return n.StopFast(w.ctx) }

func endPrimary(end func(*world, *lab.Node) error) func(*world, choice) {
	return func(w *world, c choice) {
		p := w.primary.Load()
		w.must(end(w, p))
		w.sleep(c.lasts / 2)
		w.during(c)
		w.must(p.Start(w.ctx))
		w.after(c)
	}
}

// killBackend ends one process of a server by SIGKILL: the others end with it, and
// the server recovers by itself.
func killBackend(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	n := one(w.nodes, c.a)
	pids, err := n.DB("").Strings(ctx, `SELECT pid::text FROM pg_stat_activity
		WHERE backend_type IN ('client backend', 'walsender', 'walreceiver', 'background writer') AND pid <> pg_backend_pid() ORDER BY pid`)
	if err != nil || len(pids) == 0 {
		w.notDone(c, err)
		return
	}
	pid, err := strconv.Atoi(one(pids, c.b))
	w.must(err)
	w.say("  process %d of %s", pid, n.Name())
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	w.answers(n)
	w.after(c)
}

// answers waits until a server takes connections again.
func (w *world) answers(n *lab.Node) {
	w.wait(n.Name()+" to take connections", patience, func() (bool, string) {
		ctx, cancel := w.within(5 * time.Second)
		defer cancel()
		if err := n.Exec(ctx, "SELECT 1"); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

func stopStandby(w *world, c choice) {
	n := w.standby(c.a)
	w.say("  %s", n.Name())
	w.must([]func(*lab.Node) error{w.stopFast, w.stopImmediate, w.killNode}[c.b%3](n))
	w.sleep(c.lasts)
	w.during(c)
	w.must(n.Start(w.ctx))
	w.after(c)
}

func freezeStandby(w *world, c choice) {
	n := w.standby(c.a)
	w.say("  %s", n.Name())
	w.must(n.Freeze())
	w.sleep(c.lasts)
	w.during(c)
	w.must(n.Thaw())
	w.answers(n)
	w.after(c)
}

func freezePostmaster(w *world, c choice) {
	n := w.standby(c.a)
	w.say("  %s", n.Name())
	w.must(syscall.Kill(n.PID(), syscall.SIGSTOP))
	w.sleep(c.lasts)
	w.during(c)
	w.must(syscall.Kill(n.PID(), syscall.SIGCONT))
	w.answers(n)
	w.after(c)
}

// freezeWalreceiver goes, when it lasts, beyond the timeouts of both sides.
func freezeWalreceiver(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	n := w.standby(c.a)
	var pid int
	if err := n.QueryRow(ctx, "SELECT coalesce(max(pid), 0) FROM pg_stat_wal_receiver").Scan(&pid); err != nil || pid == 0 {
		w.notDone(c, err)
		return
	}
	w.say("  of %s", n.Name())
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended by itself, as at its upstream's end
	w.sleep(2 * c.lasts)
	w.during(c)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	w.after(c)
}

func pauseReplay(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	n := w.standby(c.a)
	w.say("  on %s", n.Name())
	w.must(n.Exec(ctx, "SELECT pg_wal_replay_pause()"))
	w.sleep(c.lasts)
	w.during(c)
	w.must(resumeReplay(ctx, n))
	w.after(c)
}

func toggleFeedback(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	n := w.standby(c.a)
	value := []string{"on", "off"}[c.b%2]
	w.say("  %s on %s", value, n.Name())
	w.must(n.Set(ctx, map[string]string{"hot_standby_feedback": value}))
	w.after(c)
}

func join(words []string) string { return strings.Join(words, ",") }
