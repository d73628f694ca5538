package chaos

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/status"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// daemon is one of the controllers that compete, over all its lives.
type daemon struct {
	name string

	mu   sync.Mutex
	self *lab.Daemon
}

func (w *world) startDaemons() {
	var err error
	w.etcd, err = lab.StartEtcd(w.ctx, lab.EtcdOptions{Dir: w.lab.Dir(), TLS: true, Users: true})
	w.must(err)
	w.t.Cleanup(func() { w.must(w.etcd.Close()) })
	for _, name := range []string{"one", "two"} {
		d := &daemon{name: name}
		w.daemons = append(w.daemons, d)
		w.start(d)
	}
}

func (w *world) start(d *daemon) {
	self, err := w.lab.StartDaemon(lab.DaemonOptions{
		Binary: harness.Binary(w.t), Members: w.nodes, Name: d.name, Etcd: w.etcd.Section(nil, "lease_ttl: "+leaseTTL.String()),
		More: "protection: {old_sessions: manage}\n", // the observer is there before the hold of a node made anew
	})
	w.must(err)
	d.mu.Lock()
	d.self = self
	d.mu.Unlock()
}

func (d *daemon) current() *lab.Daemon {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.self
}

func (d *daemon) status(ctx context.Context) (status.Status, error) {
	return harness.StatusOf(ctx, d.current())
}

func (d *daemon) ended() bool {
	select {
	case <-d.current().Exited():
		return true
	default:
		return false
	}
}

// leader is the controller that led last, or the other one.
func (w *world) leader(which int) *daemon {
	w.claims.mu.Lock()
	name := w.claims.leads[w.claims.newest]
	w.claims.mu.Unlock()
	for _, d := range w.daemons {
		if (d.name == name) == (which%3 != 0) {
			return d
		}
	}
	return w.daemons[0]
}

// stopDaemon lets a controller stand still for longer than its lease lasts: when it
// goes on it knows nothing of the time that has passed.
func stopDaemon(w *world, c choice) {
	d := w.leader(c.a)
	w.say("  %s stands still", d.name)
	w.must(d.current().Signal(syscall.SIGSTOP))
	w.sleep(leaseTTL + c.lasts)
	w.during(c)
	w.must(d.current().Signal(syscall.SIGCONT))
	w.after(c)
}

func killDaemon(w *world, c choice) {
	d := w.leader(c.a)
	w.say("  %s is killed", d.name)
	w.kill(d)
	w.sleep(c.lasts)
	w.during(c)
	w.start(d)
	w.after(c)
}

func (w *world) kill(d *daemon) {
	w.must(d.current().Signal(syscall.SIGKILL))
	select {
	case <-d.current().Exited():
	case <-time.After(patience):
		w.t.Fatalf("controller %s does not end after SIGKILL", d.name)
	}
}

// stopDaemons has nobody lead: no mirror moves meanwhile.
func stopDaemons(w *world, c choice) {
	for _, d := range w.daemons {
		w.must(d.current().Signal(syscall.SIGSTOP))
	}
	w.sleep(time.Second) // what they had sent before ends
	w.nothingMoves("both controllers stand still", c)
	for _, d := range w.daemons {
		w.must(d.current().Signal(syscall.SIGCONT))
	}
	w.after(c)
}

// nothingMoves compares all mirrors at two moments between which nobody leads.
func (w *world) nothingMoves(why string, c choice) {
	w.sleep(500 * time.Millisecond) // the observer looks again
	before := map[string]map[string]pos{}
	for _, n := range w.standbys() {
		before[n.Name()] = w.observer.positions(n)
	}
	w.during(c)
	w.sleep(c.lasts)
	for _, n := range w.standbys() {
		if after := w.observer.positions(n); !maps.Equal(before[n.Name()], after) {
			w.violate("%s, and mirrors on %s went from %v to %v", why, n.Name(), before[n.Name()], after)
		}
	}
	w.report.still++
}

func revokeLease(w *world, c choice) {
	ctx, cancel := w.within(20 * time.Second)
	defer cancel()
	if err := w.etcd.RevokeLeaseOf(ctx, "/slotkeeper/lab/leader"); err != nil {
		w.notDone(c, err)
	}
	w.after(c)
}

func killEtcdMember(w *world, c choice) {
	m := one(w.etcd.Members(), c.a)
	w.say("  etcd's member %s is killed", m.Name())
	w.must(m.Kill(w.ctx))
	w.sleep(leaseTTL + c.lasts)
	w.during(c)
	w.must(m.Start())
	w.after(c)
}

func isolateEtcdMember(w *world, c choice) {
	m := one(w.etcd.Members(), c.a)
	w.say("  etcd's member %s is isolated", m.Name())
	m.Isolate()
	w.sleep(leaseTTL + c.lasts)
	w.during(c)
	m.Rejoin()
	w.after(c)
}

// killEtcd takes all of etcd away for longer than a lease lasts: nobody writes.
func killEtcd(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	w.must(w.etcd.KillAll(ctx))
	w.sleep(leaseTTL + 2*time.Second) // the lease ends, and the call that was under way
	w.nothingMoves("etcd is down for longer than a lease lasts", c)
	w.must(w.etcd.StartAll(ctx))
	w.after(c)
}

func (w *world) healEtcd(ctx context.Context) {
	for _, m := range w.etcd.Members() {
		m.Rejoin()
	}
	w.must(w.etcd.StartAll(ctx))
}

func (w *world) healDaemons() {
	for _, d := range w.daemons {
		if d.ended() {
			w.violate("controller %s has ended by itself; its last messages:\n%s", d.name, d.current().LogTail(10))
			w.start(d)
			continue
		}
		w.must(d.current().Signal(syscall.SIGCONT))
	}
}

// leave stops the controllers and takes everything of slotkeeper's off: nothing is left.
func (w *world) leave() {
	if w.t.Failed() {
		return // the folder is left, as it is
	}
	ctx, cancel := w.within(patience)
	defer cancel()
	config := w.daemons[0].current().Config()
	for _, d := range w.daemons {
		if err := d.current().Stop(ctx); err != nil {
			w.violate("controller %s: %v", d.name, err)
		}
	}
	if r := harness.Command(w.t, ctx, "uninstall", "--config", config); r.Code != 0 {
		w.violate("uninstall ends with %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, n := range w.nodes {
		left, err := n.DB("").Strings(ctx, `SELECT slot_name::text FROM pg_replication_slots
			WHERE slot_name LIKE 'slotkeeper%' OR slot_type = 'logical' AND pg_is_in_recovery()`)
		w.must(err)
		if len(left) > 0 {
			w.violate("after uninstall %s has the slots %q", n.Name(), left)
		}
		for _, file := range ourFiles(n) {
			w.violate("after uninstall %s is left", file)
		}
	}
}

// ourFiles are the fence and the markers on a node.
func ourFiles(n *lab.Node) []string {
	var found []string
	for _, pattern := range []string{"slotkeeper*", "*/slotkeeper*"} {
		files, _ := filepath.Glob(filepath.Join(n.DataDir(), "pg_replslot", pattern)) // the pattern is good
		found = append(found, files...)
	}
	return found
}
