package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// always drives worlds through random faults, and wants holds to find nothing
// after each cycle.
func always(t *testing.T, holds ...func(f *faults) string) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyWorld(t)
		for range rapid.IntRange(5, 60).Draw(t, "cycles") {
			f.cycle(t)
			for _, hold := range holds {
				if wrong := hold(f); wrong != "" {
					t.Fatalf("%s\n%s", wrong, describe(f.w.plan))
				}
			}
		}
	})
}

// anyWorld begins anywhere in the circle of transaction ids, often just before
// its end.
func anyWorld(t *rapid.T) *faults {
	next := cluster.XID(800)
	switch rapid.IntRange(0, 2).Draw(t, "circle") {
	case 1:
		next = cluster.XID(1<<32 - uint64(rapid.IntRange(1, 60).Draw(t, "before the wrap")))
	case 2:
		next = normal(cluster.XID(rapid.Uint32().Draw(t, "next xid")))
	}
	return &faults{w: newWorldAt(next, "b", "c")}
}

// later drives a world through some cycles and gives it.
func later(t *rapid.T, most int) *faults {
	f := anyWorld(t)
	for range rapid.IntRange(2, most).Draw(t, "cycles") {
		f.cycle(t)
	}
	f.w.refuse, f.w.lose = nil, nil
	return f
}

// No state is called SAFE from which the model's decoder could not go on.
func TestPropertySafeMeansThatADecoderCanGoOn(t *testing.T) {
	always(t, safeMeansSafe)
}

func safeMeansSafe(f *faults) string {
	w := f.w
	for _, v := range w.verdicts {
		if v.State != Safe || w.plan.Primary == "" && w.unheld {
			continue // without a primary a verdict is as old as its proof
		}
		s := w.servers[v.Standby]
		if m := s.slots[v.Slot]; m != nil && m.Synced {
			if !s.node.SyncSlots || m.Invalidated != "" || m.Confirmed.V > s.node.Replay.V {
				return fmt.Sprintf("the server's copy of %s on %s is SAFE: %+v", v.Slot, v.Standby, m)
			}
			continue
		}
		if why := w.decoder(v.Standby, v.Slot); why != "" {
			return fmt.Sprintf("%s on %s is SAFE, and %s", v.Slot, v.Standby, why)
		}
	}
	return ""
}

func TestPropertyNeverBackward(t *testing.T) { always(t, neverBackward) }

func neverBackward(f *faults) string {
	for name, s := range f.w.servers {
		for slot, was := range f.before[name] {
			now := s.slots[slot]
			if now == nil || !now.Incarnation.Same(was.Incarnation) || was.Kind != cluster.Logical || now.Marker == nil || now.Marker.Kind != cluster.MarkMirror {
				continue
			}
			a, _ := was.Position()
			if b, ok := now.Position(); ok && b.Behind(a) {
				return fmt.Sprintf("%s on %s went from %v back to %v", slot, name, a, b)
			}
		}
	}
	return ""
}

func TestPropertyNeverBeyondReplay(t *testing.T) { always(t, neverBeyondReplay) }

func neverBeyondReplay(f *faults) string {
	for _, step := range f.w.plan.Steps {
		n := f.w.servers[step.Node].node
		for _, ch := range step.Changes {
			if !n.InRecovery || ch.Position.Confirmed > n.Replay.V {
				return fmt.Sprintf("%s brings %s to %s, replay is at %s", step.ID, ch.Name, ch.Position.Confirmed, n.Replay.V)
			}
		}
	}
	return ""
}

func TestPropertyDropsOnlyOursInactiveAndTwiceAbsent(t *testing.T) { always(t, dropsOnlyOurs) }

func dropsOnlyOurs(f *faults) string {
	for _, step := range f.w.plan.Steps {
		if step.Kind != StepDrop {
			continue
		}
		for _, name := range step.Names {
			was, ok := f.before[step.Node][name]
			_, there := f.before[f.w.plan.Primary][name]
			switch {
			case !ok || was.Marker == nil || was.Synced || was.ActivePID != 0:
				return fmt.Sprintf("%s drops %s, which is not ours or in use: %+v", step.ID, name, was)
			case step.OnPrimary && was.Marker.Kind != cluster.MarkMirror:
				return fmt.Sprintf("%s drops %s, an original", step.ID, name)
			case name == cluster.HoldName || step.OnPrimary || there:
			case f.absent[name] < absentReads:
				return fmt.Sprintf("%s drops %s, absent in %d reads", step.ID, name, f.absent[name])
			}
		}
	}
	return ""
}

// What is not ours is not touched in any other way either.
func TestPropertyTouchesOnlyOurs(t *testing.T) {
	always(t, func(f *faults) string {
		for _, step := range f.w.plan.Steps {
			for _, ch := range step.Changes {
				if was, ok := f.before[step.Node][ch.Name]; ok && (was.Marker == nil || was.Synced) {
					return fmt.Sprintf("%s touches %s", step.ID, ch.Name)
				}
			}
		}
		return ""
	})
}

// Without a fresh topology, a fresh read of one primary, and a fence that is not
// another leader's, nothing is written; and each call shows the lease's epoch.
func TestPropertyNothingWithoutFreshLeaseTopologyAndPrimary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		w := f.w
		f.led(func() { w.createSlot("new") }) // there is something to do
		now := func() Observation { w.cycle++; return w.observe() }
		primary := FindPrimary(now(), w.memory)
		for name, spoil := range map[string]func(o Observation) (spoiled []string){
			"the primary is silent": func(o Observation) []string {
				o.Nodes[primary] = Fact[NodeRead]{Err: "timeout"}
				return slices.Collect(maps.Keys(w.servers))
			},
			"the primary's read is old": func(o Observation) []string { age(o, primary); return slices.Collect(maps.Keys(w.servers)) },
			"b is silent":               func(o Observation) []string { o.Nodes["b"] = Fact[NodeRead]{Err: "timeout"}; return []string{"b"} },
			"b's read is old":           func(o Observation) []string { age(o, "b"); return []string{"b"} },
			"a later leader was on b":   func(o Observation) []string { lead(o, "b", w.memory.Epoch+1); return []string{"b"} },
			"a later leader was on a": func(o Observation) []string {
				lead(o, primary, w.memory.Epoch+1)
				return slices.Collect(maps.Keys(w.servers))
			},
			"another etcd's leader on c": func(o Observation) []string { foreignTo(o, "c"); return []string{"c"} },
		} {
			o := now()
			untouched := spoil(o)
			if primary == "" || slices.Contains(untouched, primary) && len(untouched) == 1 {
				untouched = slices.Collect(maps.Keys(w.servers))
			}
			for _, step := range Decide(w.now, w.policy, o, w.memory).Steps {
				if slices.Contains(untouched, step.Node) {
					t.Fatalf("%s, and there is step %s", name, step.ID)
				}
				want := cluster.Fence{Scope: scope, Store: store, Epoch: w.memory.Epoch, Owner: "ctl", SystemID: system, Timeline: o.Nodes[primary].Value.Node.Timeline}
				if step.Fence != want {
					t.Fatalf("%s shows %+v, want %+v", step.ID, step.Fence, want)
				}
			}
		}
	})
}

// Where the topology cannot be read, what is there goes on moving, and nothing is
// made and nothing dropped but what must not exist on a primary.
func TestPropertyNothingIsMadeOrDroppedWithoutATopology(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		w := f.w
		f.led(func() { w.createSlot("new") })
		o := w.observe()
		o.Topology.Err = "etcd does not answer"
		for _, step := range Decide(w.now, w.policy, o, w.memory).Steps {
			if step.Kind == StepDrop && !step.OnPrimary {
				t.Fatalf("step %s drops %q", step.ID, step.Names)
			}
			for _, ch := range step.Changes {
				if m := w.servers[step.Node].slots[ch.Name]; m == nil || m.Marker == nil || m.Marker.Kind != cluster.MarkMirror {
					t.Fatalf("step %s makes %s", step.ID, ch.Name)
				}
			}
		}
	})
}

func age(o Observation, node string) {
	fact := o.Nodes[node]
	fact.At = o.Begun.Add(-DefaultStaleAfter - time.Second)
	o.Nodes[node] = fact
}

func lead(o Observation, node string, epoch cluster.Epoch) {
	fact := o.Nodes[node]
	fact.Value.Node.Fence = cluster.Some(cluster.Fence{Scope: scope, Store: store, Epoch: epoch, Owner: "other"})
	o.Nodes[node] = fact
}

func foreignTo(o Observation, node string) {
	fact := o.Nodes[node]
	fact.Value.Node.Fence = cluster.Some(cluster.Fence{Scope: scope, Store: "store-2", Epoch: 1})
	o.Nodes[node] = fact
}

// Each step waits for its node's fence, where that is raised in the same plan.
func TestPropertyFenceComesFirst(t *testing.T) {
	always(t, func(f *faults) string {
		fenced := map[string]bool{}
		for _, step := range f.w.plan.Steps {
			fenced[step.Node] = fenced[step.Node] || step.Kind == StepFence
			if fenced[step.Node] && step.Kind != StepFence && !slices.Contains(step.Needs, "fence/"+step.Node) {
				return step.ID + " does not need its fence"
			}
		}
		return ""
	})
}

// Each pair has one verdict. What is not SAFE says why; and a mirror that could
// be moved and is not has something that says why.
func TestPropertyEveryNonActionHasAReason(t *testing.T) { always(t, everyNonActionHasAReason) }

func everyNonActionHasAReason(f *faults) string {
	w := f.w
	seen := map[Pair]int{}
	for _, v := range w.verdicts {
		seen[Pair{v.Slot, v.Standby}]++
		if v.State == "" || v.Message == "" || v.State != Safe && (v.Hint == "" || v.Reason == "") || v.State == Safe && v.Reason != "" {
			return fmt.Sprintf("a verdict without its reason, sentence or hint: %+v", v)
		}
	}
	for _, cond := range w.conditions {
		if cond.Message == "" || cond.Hint == "" || cond.Severity == "" || cond.Since.IsZero() {
			return fmt.Sprintf("a condition without its severity, sentence, hint or date: %+v", cond)
		}
	}
	for _, out := range w.steps {
		if out.Skipped == "" && out.Err == "" && out.Outcomes == nil {
			return fmt.Sprintf("step %s has no outcome and no reason", out.StepID)
		}
	}
	for i := range w.plan.pairs {
		if pr := &w.plan.pairs[i]; pr.verdict.State == Safe && !pr.send && unexplained(w, pr) {
			return fmt.Sprintf("%s on %s stands at %+v, could go on to %+v, and nothing says why it does not", pr.t.slot.Name, pr.node, pr.mirror.Confirmed, pr.t.kept[pr.best].Position)
		}
	}
	if w.primary() == nil || w.plan.Primary == "" {
		return ""
	}
	for name := range w.servers {
		for slot, s := range f.before[w.plan.Primary] {
			if name != w.plan.Primary && w.policy.Selected(s) && !w.memory.Slots[slot].Unproven && seen[Pair{slot, name}] != 1 {
				return fmt.Sprintf("%s on %s has %d verdicts", slot, name, seen[Pair{slot, name}])
			}
		}
	}
	return ""
}

func unexplained(w *world, pr *pair) bool {
	if pr.server || pr.best < 0 || pr.mirror == nil {
		return false
	}
	at, _ := pr.mirror.Position()
	next := pr.t.kept[pr.best].Position
	tried := !pr.note.Tried.At.IsZero()
	return next != at && !next.Behind(at) && !tried && !pr.t.held && pr.mirror.ActivePID == 0 && holdOf(w, pr.node).state != holdUnsettled
}

func holdOf(w *world, node string) hold {
	c := &cycle{p: w.policy}
	return c.examineHold(w.servers[node].read().Slots)
}

// Whatever has happened, once it is over all becomes SAFE again.
func TestPropertyHeals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { heal(t, later(t, 40)) })
}

// Applying the plan to the model and deciding again gives an empty plan.
func TestPropertyApplyThenDecideIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 40)
		heal(t, f)
		w := f.w
		if w.primary() == nil {
			return
		}
		w.now = w.now.Add(time.Minute)
		w.turns(3)
		if len(w.plan.Steps) != 0 || w.plan.Again {
			t.Fatalf("again %t, left to do: %s", w.plan.Again, describe(w.plan))
		}
	})
}

func heal(t *rapid.T, f *faults) {
	w := f.w
	if w.primary() == nil {
		return
	}
	repair(f)
	for range 8 {
		for name, s := range w.primary().slots {
			if s.Kind == cluster.Logical && s.Invalidated == "" {
				w.catchUp(name)
			}
		}
		w.replayAll()
		for name, s := range w.servers {
			if s.node.InRecovery && s.node.SyncSlots {
				w.syncSlots(name)
			}
		}
		w.turn()
		w.now = w.now.Add(time.Second)
	}
	for _, v := range w.verdicts {
		if v.State != Safe {
			t.Fatalf("%s on %s is %s(%s) %s\n%s", v.Slot, v.Standby, v.State, v.Reason, v.Message, describe(w.plan))
		}
	}
}

// repair does what an administrator must do: bring nodes back, make room, drop
// what is lost or foreign.
func repair(f *faults) {
	w := f.w
	for i := range w.open {
		if w.open[i].to == 0 {
			w.open[i].to = w.primary().node.Insert.V
		}
	}
	for _, s := range w.servers {
		w.rejoin(s)
		s.up, s.paused, s.full, s.keep, s.node.IdleSlotTimeout = true, false, false, 0, 0
		maps.DeleteFunc(s.slots, func(name string, v *cluster.Slot) bool {
			foreign := v.Marker == nil && v.Kind == cluster.Logical && s.node.InRecovery && !(v.Synced && s.node.SyncSlots)
			return foreign || v.Invalidated != "" && !s.node.InRecovery
		})
		if h := s.slots[cluster.HoldName]; h != nil {
			h.ActivePID = 0
		}
	}
}

// What Decide says does not depend on the order of what it was given, and it
// changes nothing of that.
func TestPropertyOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		o := f.w.observe()
		before := fmt.Sprintf("%v", f.w.memory)
		one := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if after := fmt.Sprintf("%v", f.w.memory); after != before {
			t.Fatalf("Decide changed its argument: %s", cmp.Diff(before, after))
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for name, fact := range o.Nodes {
			fact.Value.Slots, fact.Value.Walsenders = slices.Clone(fact.Value.Slots), slices.Clone(fact.Value.Walsenders)
			shuffle(r, fact.Value.Slots)
			shuffle(r, fact.Value.Walsenders)
			o.Nodes[name] = fact
		}
		shuffle(r, o.Topology.Value.Members)
		two := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if !reflect.DeepEqual(one.Steps, two.Steps) || !reflect.DeepEqual(one.Verdicts, two.Verdicts) || !reflect.DeepEqual(one.Conditions, two.Conditions) {
			t.Fatalf("another order, another plan: %s", cmp.Diff(one.Steps, two.Steps))
		}
	})
}

func shuffle[T any](r *rand.Rand, all []T) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

func TestPropertyThinKeepsEndsAndPinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "reads")
		var kept []Kept
		at := epochZero
		for i := range n {
			at = at.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "gap")) * time.Millisecond)
			kept = append(kept, Kept{At: at, Position: cluster.Position{Restart: 1, Confirmed: cluster.LSN(i + 1), CatalogXmin: 700}})
		}
		pinned := map[cluster.Position]bool{kept[rapid.IntRange(0, n-1).Draw(t, "pinned")].Position: true}
		got := thin(at, kept, pinned)
		if len(got) > maxKept || got[0].Position != kept[0].Position || got[len(got)-1].Position != kept[n-1].Position {
			t.Fatalf("%d reads, from %v to %v", len(got), got[0].Position, got[len(got)-1].Position)
		}
		for p := range pinned {
			if !slices.ContainsFunc(got, func(k Kept) bool { return k.Position == p }) {
				t.Fatalf("%v is gone", p)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b Kept) int { return int(a.Position.Confirmed) - int(b.Position.Confirmed) }) {
			t.Fatal("out of order")
		}
	})
}
