package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// promote ends the primary, makes a standby the next one, and has the others follow.
func (w *world) promote(c choice) {
	ctx, cancel := w.within(3 * patience)
	defer cancel()
	target := w.standby(c.a)
	if target == nil {
		w.report.notDone[c.fault.name]++
		return
	}
	doc, claimed := w.claims.wait(5 * time.Second)
	for end := time.Now().Add(20 * time.Second); ; {
		if _, _, why := unsafe(doc, steady(), []*lab.Node{target}); c.b%4 == 0 || why == "" || time.Now().After(end) {
			break
		}
		w.sleep(50 * time.Millisecond) // mostly one that is ready for it
		doc, claimed = w.claims.current()
	}
	old := w.primary.Swap(nil) // nobody begins anything there
	claims := safe(doc, target)
	if !claimed {
		claims = nil
	}
	if c.b%3 == 0 {
		w.must(old.StopImmediate(ctx))
	} else {
		w.must(old.Kill(ctx))
	}
	w.must(resumeReplay(ctx, target))
	w.must(target.Promote(ctx))
	w.report.promotions++
	delete(w.upstream, target)
	w.resolve(ctx, target, claims)
	w.primary.Store(target)
	w.claims.withdraw()
	w.load.Retarget(target)
	w.say("  %s is the primary instead of %s", target.Name(), old.Name())
	for _, cascading := range []bool{false, true} { // one must be where it is before others can be behind it
		for _, n := range w.nodes {
			up := w.upstreamFor(n, target)
			if n != target && n != old && (up != target) == cascading {
				w.must(w.follow(ctx, n, up))
			}
		}
	}
	if c.b%2 == 0 {
		w.sleep(c.lasts) // the cluster is one node short
	}
	w.rejoin(ctx, old, c)
	w.tidy(ctx)
	w.after(c)
}

// resolve plays the promotion's gate: what was called SAFE must be there, and
// what was not is refused: dropped before a consumer can use it.
func (w *world) resolve(ctx context.Context, target *lab.Node, claims map[string]status.Standby) {
	for _, r := range w.readers {
		_, promised := claims[r.slot]
		var there bool
		w.must(target.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)", r.slot).Scan(&there))
		switch {
		case promised && !there:
			w.violate("slot %s was SAFE on %s, and after its promotion it is not there", r.slot, target.Name())
		case promised:
			continue
		}
		r.mu.Lock()
		r.refused = true
		r.mu.Unlock()
		if there {
			w.drop(target, r.slot)
		}
		r.renew(target)
		w.say("  slot %s was not SAFE on %s (there: %t), and is made anew", r.slot, target.Name(), there)
	}
	var database bool
	w.must(target.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", w.database()).Scan(&database))
	if !database {
		w.churn.database = 0 // the last primary has taken it along
	}
}

// upstreamFor keeps a cascade where it was, unless its upstream is gone.
func (w *world) upstreamFor(n, primary *lab.Node) *lab.Node {
	up := w.upstream[n]
	if up == nil || up == primary || w.upstream[up] == nil || !up.Running() {
		return primary
	}
	return up
}

// follow leads a standby after a primary's change, by whatever it takes.
func (w *world) follow(ctx context.Context, n, upstream *lab.Node) error {
	w.upstream[n] = upstream
	if !n.Running() {
		return nil // the recovery sees to it
	}
	fork, err := w.primaryOr(upstream).Fork(ctx)
	if err != nil {
		return err
	}
	received, err := n.ReceivedLSN(ctx)
	if err != nil {
		return err
	}
	if received > fork {
		w.say("  %s has received %s, beyond the fork at %s", n.Name(), received, fork)
		if err := n.StopImmediate(ctx); err != nil {
			return err
		}
		return w.rebuild(ctx, n, upstream)
	}
	return n.Follow(ctx, upstream)
}

func (w *world) primaryOr(n *lab.Node) *lab.Node {
	if p := w.primary.Load(); p != nil {
		return p
	}
	return n
}

// rejoin makes the dead primary a standby: rewound, or copied anew; behind the
// primary, or behind another standby where nobody cascades; that
// one has no WAL from before it, which a rewound node would need.
func (w *world) rejoin(ctx context.Context, old *lab.Node, c choice) {
	p := w.primary.Load()
	w.upstream[old], w.begunLate[old] = p, true
	if c.b%5 < 3 {
		w.observer.newLife(old)
		err := old.Rewind(ctx, p)
		w.observer.newLife(old)
		if err == nil {
			w.report.rewound++
			w.must(old.Start(ctx))
			return
		}
		w.say("  %s cannot be rewound: %v", old.Name(), err)
	}
	upstream := p
	if behind := w.standby(c.a); !w.cascades() && behind != nil && behind != old {
		upstream = behind
	}
	w.must(w.rebuild(ctx, old, upstream))
}

func (w *world) rebuild(ctx context.Context, n, upstream *lab.Node) error {
	w.observer.newLife(n)
	if err := os.RemoveAll(n.DataDir()); err != nil {
		return err
	}
	if err := n.BaseBackup(ctx, w.primary.Load(), lab.StandbyOptions{}); err != nil {
		return err
	}
	w.observer.newLife(n)
	w.report.rebuilt++
	w.begunLate[n] = true
	w.upstream[n] = upstream
	if err := n.Follow(ctx, upstream); err != nil {
		return err
	}
	return n.Start(ctx)
}

func (w *world) cascades() bool {
	p := w.primary.Load()
	for n, up := range w.upstream {
		if n != p && up != p {
			return true
		}
	}
	return false
}

// tidy drops the physical slots of standbys that stream from elsewhere now: nobody
// would ever let their WAL go.
func (w *world) tidy(ctx context.Context) {
	for _, n := range w.nodes {
		if !n.Running() {
			continue
		}
		var wanted []string
		for down, up := range w.upstream {
			if up == n {
				wanted = append(wanted, down.SlotName())
			}
		}
		slices.Sort(wanted)
		err := n.Exec(ctx, fmt.Sprintf(`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
			WHERE slot_type = 'physical' AND slot_name LIKE 'lab\_%%' AND active_pid IS NULL AND NOT slot_name = ANY ('{%s}')`, join(wanted)))
		if err != nil {
			w.say("  tidying %s: %v", n.Name(), err)
		}
	}
}

func resumeReplay(ctx context.Context, n *lab.Node) error {
	return n.Exec(ctx, "SELECT pg_wal_replay_resume() WHERE pg_is_in_recovery()")
}

// recover mends everything and wants every slot SAFE on every standby.
func (w *world) recover() {
	ctx, cancel := w.within(2 * patience)
	defer cancel()
	w.healEtcd(ctx)
	w.healDaemons()
	for _, n := range w.nodes {
		if !n.Running() {
			w.must(n.Start(ctx))
		}
		w.must(n.Thaw())
		w.must(resumeReplay(ctx, n))
	}
	w.tidy(ctx)
	begun := time.Now()
	slots, err := w.primary.Load().DB("").Strings(ctx, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary ORDER BY 1")
	w.must(err)
	w.claims.withdraw()
	moved := begun
	w.wait("every slot to be SAFE on every standby", patience, func() (bool, string) {
		doc, ok := w.claims.current()
		if !ok {
			return false, "nobody says anything: the last document is of " + doc.ObservedAt.Format(time.StampMilli)
		}
		slot, on, why := unsafe(doc, slots, w.standbys())
		if why != "" && w.begunLate[on] && verdict(doc, slot, on).Reason == plan.ReasonWALMissing && time.Since(moved) > 2*time.Second {
			w.moveOn(ctx, slot)
			moved = time.Now()
		}
		return why == "", why
	})
	w.reader("idle").rest()
	took := time.Since(begun)
	w.report.slowest = max(w.report.slowest, took)
	w.say("all mended: %d slots are SAFE on all standbys after %s", len(slots), took.Round(10*time.Millisecond))
}

// moveOn has the consumer of a slot come by: a standby that was made anew has no WAL
// from before, and heals when the slot has moved past it.
func (w *world) moveOn(ctx context.Context, slot string) {
	if r := w.reader(slot); r != nil {
		r.hurry()
		return
	}
	w.advance(ctx, slot)
}
