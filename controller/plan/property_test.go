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

// faults drives a world through whatever may happen to it. After each cycle
// the promises must hold.
type faults struct {
	w      *world
	before map[string]map[string]cluster.Slot // per server, before the cycle
}

var slotNames = []string{"app", "billing", "cdc"}

func (f *faults) act(t *rapid.T) {
	w := f.w
	action := rapid.SampledFrom([]string{
		"confirm", "confirm", "confirm", "vacuum", "replay", "replay", "create", "drop slot", "recreate", "drop hold", "drop hold on a standby",
		"use hold", "unsave hold", "away", "back", "crash", "promote", "rejoin", "minutes", "hours", "new leader", "forgetful leader", "lost mirror",
		"file gone", "foreign", "network", "idle", "idle", "failover", "worker", "work", "work", "idle timeout",
	}).Draw(t, "action")
	p := w.primary()
	some := rapid.SampledFrom(slices.Sorted(maps.Keys(w.servers))).Draw(t, "server")
	name := rapid.SampledFrom(slotNames).Draw(t, "slot")
	s := w.servers[some]
	if p == nil {
		f.withoutPrimary(action, some)
		return
	}
	slot := p.slots[name]
	live := slot != nil && slot.Invalidated == ""
	switch action {
	case "confirm":
		f.confirm(t, name, live)
	case "vacuum":
		w.vacuum()
	case "replay":
		f.replay(t, some)
	case "create":
		if slot == nil {
			w.createSlot(name)
		}
	case "drop slot":
		delete(p.slots, name)
	case "recreate":
		if slot != nil {
			w.createSlot(name)
		}
	case "drop hold":
		delete(p.slots, cluster.HoldName)
	case "drop hold on a standby":
		delete(s.slots, cluster.HoldName)
	case "use hold":
		if h := p.slots[cluster.HoldName]; h != nil {
			h.Restart = cluster.Some(p.node.Insert.V)
		}
	case "unsave hold":
		if h := p.slots[cluster.HoldName]; h != nil {
			h.Saved = false
		}
	case "away":
		if s != p {
			s.up = false
		}
	case "crash": // confirmed_flush_lsn is not saved at each move
		if live && slot.Confirmed.V > slot.Restart.V+0x20 {
			slot.Confirmed = cluster.Some(slot.Confirmed.V - 0x10)
		}
	case "promote":
		if s.up && s.node.InRecovery && s.node.Timeline == p.node.Timeline {
			f.promote(some)
		}
	case "lost mirror":
		if s.up && s.node.InRecovery {
			delete(s.slots, name)
		}
	case "file gone":
		if m := s.slots[name]; m != nil && s.node.InRecovery {
			m.Snapshot = cluster.SnapshotAbsent
		}
	case "failover":
		if live {
			slot.Failover = !slot.Failover
		}
	case "work":
		if s.up && s.node.InRecovery && s.node.SyncSlots && s.node.Timeline == p.node.Timeline {
			w.syncSlots(some)
		}
	case "foreign":
		if s.up && s.node.InRecovery && s.slots[name] == nil {
			x, at := cluster.Some(w.nextXID), s.node.Replay
			s.slots[name] = &cluster.Slot{Name: name, Kind: cluster.Logical, Plugin: "pgoutput", Database: "shop", DatabaseOID: 5, Incarnation: w.incarnation(),
				Restart: cluster.Some(at.V - 0x100), Confirmed: at, CatalogXmin: x, EffectiveCatalogXmin: x, WALok: true, Saved: true}
		}
	default:
		f.withoutPrimary(action, some)
	}
}

func (f *faults) withoutPrimary(action, some string) {
	w := f.w
	s := w.servers[some]
	switch action {
	case "back":
		if !s.up && (s.node.InRecovery || w.primary() == nil && s.node.Timeline >= w.memory.Timeline) {
			s.up = true
		}
	case "rejoin":
		f.rejoin(s)
	case "promote":
		if s.up && s.node.InRecovery && s.node.Timeline == w.memory.Timeline {
			f.promote(some)
		}
	case "worker":
		s.node.SyncSlots = !s.node.SyncSlots
	case "idle timeout":
		s.node.IdleSlotTimeout = time.Minute - s.node.IdleSlotTimeout
	case "minutes":
		w.now = w.now.Add(time.Minute)
	case "hours":
		w.now = w.now.Add(time.Hour + time.Minute)
	case "new leader":
		w.memory.Epoch++
	case "forgetful leader": // the ledger's positions are gone, its generation is not
		m := Memory{Epoch: w.memory.Epoch + 1, Store: store, SystemID: w.memory.SystemID, Timeline: w.memory.Timeline, Primary: w.memory.Primary,
			Generation: w.memory.Generation, Continuous: w.memory.Continuous, HoldGen: w.memory.HoldGen, Standbys: w.memory.Standbys}
		w.memory = m
	case "network":
		w.refuse = func(step Step) string {
			if step.Node == some {
				return "connection reset"
			}
			return ""
		}
	}
}

func (f *faults) confirm(t *rapid.T, name string, live bool) {
	w := f.w
	w.write(cluster.LSN(rapid.Uint64Range(1, 0x2000).Draw(t, "bytes")))
	if !live {
		return
	}
	slot := w.primary().slots[name]
	if x := slot.EffectiveCatalogXmin.V; rapid.Bool().Draw(t, "moves R") {
		w.confirm(name, slot.Confirmed.V, w.primary().node.Insert.V, x+(w.nextXID-x)/2)
		w.primary().files[slot.Restart.V] = rapid.Bool().Draw(t, "file")
		if rapid.Bool().Draw(t, "later file") {
			w.primary().later[slot.Restart.V] = slot.Restart.V + 1
		}
	} else {
		w.confirm(name, slot.Restart.V, w.primary().node.Insert.V, x)
	}
}

func (f *faults) replay(t *rapid.T, name string) {
	w := f.w
	s, p := w.servers[name], w.primary()
	if !s.up || !s.node.InRecovery || s.node.Timeline != p.node.Timeline {
		return
	}
	if behind := p.node.Insert.V - s.node.Replay.V; s.node.Replay.V < p.node.Insert.V {
		w.replay(name, s.node.Replay.V+cluster.LSN(rapid.Uint64Range(1, uint64(behind)).Draw(t, "replayed")))
	}
}

// promote: a foreign logical slot on a standby would be invalidated by the
// server; nothing is promised for it.
func (f *faults) promote(name string) {
	s := f.w.servers[name]
	maps.DeleteFunc(s.slots, func(_ string, v *cluster.Slot) bool {
		return v.Marker == nil && !v.Synced || v.Synced && v.Invalidated != ""
	})
	f.w.promote(name)
}

// rejoin makes the dead primary a standby, as pg_rewind does: what the fork has
// left behind is gone, its slots stay.
func (f *faults) rejoin(s *server) {
	p := f.w.primary()
	if p == nil || s == p || s.up && s.node.Timeline == p.node.Timeline {
		return
	}
	s.up = true
	s.node.InRecovery, s.node.Timeline, s.node.History = true, p.node.Timeline, p.node.History
	s.node.Insert, s.node.Flush = cluster.None[cluster.LSN](), cluster.None[cluster.LSN]()
	s.node.Replay, s.node.Receive = p.node.Insert, p.node.Insert
	s.node.Fence = cluster.None[cluster.Fence]()
	s.removed, s.vacuums = p.removed, nil
}

func (f *faults) remember() {
	f.before = map[string]map[string]cluster.Slot{}
	for name, s := range f.w.servers {
		f.before[name] = map[string]cluster.Slot{}
		for slot, v := range s.slots {
			f.before[name][slot] = *v
			if v.Marker != nil {
				m := *v.Marker
				c := f.before[name][slot]
				c.Marker = &m
				f.before[name][slot] = c
			}
		}
	}
}

func (f *faults) check(t *rapid.T) {
	w := f.w
	f.safeMeansSafe(t)
	f.neverBackward(t)
	f.stepsAreAllowed(t)
	for _, v := range w.verdicts {
		if v.State == "" || v.Message == "" || v.State != Safe && v.Hint == "" || v.State != Safe && v.Reason == "" || v.State == Safe && v.Reason != "" {
			t.Fatalf("a verdict without its reason, sentence or hint: %+v", v)
		}
	}
	if p := w.primary(); p != nil && w.plan.Primary != "" {
		f.everyPairOnce(t)
	}
}

// safeMeansSafe looks behind the verdicts, into the model.
func (f *faults) safeMeansSafe(t *rapid.T) {
	w := f.w
	p := w.primary()
	for _, v := range w.verdicts {
		if v.State != Safe || w.plan.Primary == "" {
			continue
		}
		s := w.servers[v.Standby]
		m := s.slots[v.Slot]
		switch {
		case m == nil:
			t.Fatalf("%s on %s is SAFE and not there", v.Slot, v.Standby)
		case m.Confirmed.V > s.node.Replay.V:
			t.Fatalf("%s on %s is SAFE at %s, replay is at %s", v.Slot, v.Standby, m.Confirmed.V, s.node.Replay.V)
		case m.Synced:
			if !s.node.SyncSlots || m.Invalidated != "" {
				t.Fatalf("the server's copy of %s on %s is SAFE: %+v", v.Slot, v.Standby, m)
			}
			continue
		case !p.removed.NotAfter(w.needs(m)):
			t.Fatalf("%s on %s is SAFE with catalog_xmin %s, rows of before %s are gone\nslot %+v\nits marker %+v\nhold %+v\nmarker %+v\n%s", v.Slot, v.Standby, m.CatalogXmin.V, p.removed, p.slots[v.Slot], p.slots[v.Slot].Marker, p.slots[cluster.HoldName], m.Marker, describe(w.plan))
		case m.Confirmed.V > w.highest[v.Slot]:
			t.Fatalf("%s on %s is SAFE at %s, beyond all that was confirmed (%s)", v.Slot, v.Standby, m.Confirmed.V, w.highest[v.Slot])
		case pastFork(*m, p.node):
			t.Fatalf("%s on %s is SAFE past the fork", v.Slot, v.Standby)
		case (m.Marker.Way == "file" || m.Marker.Way == laterFile) && m.Snapshot != cluster.SnapshotValid:
			t.Fatalf("%s on %s is SAFE without its file", v.Slot, v.Standby)
		}
		if h := p.slots[cluster.HoldName]; h == nil || h.Restart.OK || !h.EffectiveCatalogXmin.Or(0).NotAfter(m.CatalogXmin.V) {
			t.Fatalf("%s on %s is SAFE and nothing holds its rows: %+v", v.Slot, v.Standby, h)
		}
	}
}

func (f *faults) neverBackward(t *rapid.T) {
	for name, s := range f.w.servers {
		for slot, was := range f.before[name] {
			now := s.slots[slot]
			if now == nil || !now.Incarnation.Same(was.Incarnation) || was.Kind != cluster.Logical || now.Marker == nil || now.Marker.Kind != cluster.MarkMirror {
				continue
			}
			a, _ := was.Position()
			if b, ok := now.Position(); ok && b.Behind(a) {
				t.Fatalf("%s on %s went from %v back to %v", slot, name, a, b)
			}
		}
	}
}

func (f *faults) stepsAreAllowed(t *rapid.T) {
	w := f.w
	if w.plan.Primary == "" && len(w.plan.Steps) > 0 {
		t.Fatalf("steps without a primary: %s", describe(w.plan))
	}
	fenced := map[string]bool{}
	for _, step := range w.plan.Steps {
		s := w.servers[step.Node]
		fenced[step.Node] = fenced[step.Node] || step.Kind == StepFence
		if fenced[step.Node] && step.Kind != StepFence && !slices.Contains(step.Needs, "fence/"+step.Node) {
			t.Fatalf("%s does not need its fence", step.ID)
		}
		for _, ch := range step.Changes {
			if ch.Position.Confirmed > s.node.Replay.V {
				t.Fatalf("%s: %s beyond replay %s", step.ID, ch.Position.Confirmed, s.node.Replay.V)
			}
			if was, ok := f.before[step.Node][ch.Name]; ok && (was.Marker == nil || was.Synced) {
				t.Fatalf("%s touches %s, which is not ours", step.ID, ch.Name)
			}
		}
		if step.Kind != StepDrop {
			continue
		}
		for _, name := range step.Names {
			was, ok := f.before[step.Node][name]
			if !ok || was.Marker == nil || was.Synced || was.ActivePID != 0 || step.OnPrimary && was.Marker.Kind != cluster.MarkMirror {
				t.Fatalf("%s drops %s: %+v", step.ID, name, was)
			}
		}
	}
}

func (f *faults) everyPairOnce(t *rapid.T) {
	w := f.w
	seen := map[Pair]int{}
	for _, v := range w.verdicts {
		seen[Pair{v.Slot, v.Standby}]++
	}
	for name := range w.servers {
		for slot, s := range f.before[w.plan.Primary] {
			if name == w.plan.Primary || !w.policy.Selected(s) || w.memory.Slots[slot].Unproven {
				continue
			}
			if seen[Pair{slot, name}] != 1 {
				t.Fatalf("%s on %s has %d verdicts", slot, name, seen[Pair{slot, name}])
			}
		}
	}
}

func TestPropertyPromisesHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &faults{w: newWorld("b", "c")}
		for range rapid.IntRange(5, 60).Draw(t, "cycles") {
			f.w.refuse = nil
			for range rapid.IntRange(1, 3).Draw(t, "actions") {
				f.act(t)
			}
			f.remember()
			f.w.turn()
			f.check(t)
		}
	})
}

// Whatever has happened, once it is over all becomes SAFE again, and then
// nothing is left to do.
func TestPropertyHealsAndThenRests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &faults{w: newWorld("b", "c")}
		for range rapid.IntRange(5, 40).Draw(t, "cycles") {
			f.w.refuse = nil
			f.act(t)
			f.w.turn()
		}
		w := f.w
		w.refuse = nil
		if w.primary() == nil {
			return
		}
		for _, s := range w.servers {
			f.rejoin(s)
			maps.DeleteFunc(s.slots, func(_ string, v *cluster.Slot) bool {
				return v.Marker == nil && v.Kind == cluster.Logical && s.node.InRecovery && !(v.Synced && s.node.SyncSlots)
			})
			s.node.IdleSlotTimeout = 0
			if h := s.slots[cluster.HoldName]; h != nil {
				h.ActivePID = 0
			}
		}
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
		w.now = w.now.Add(time.Minute)
		w.turns(3)
		if len(w.plan.Steps) != 0 || w.plan.Again {
			t.Fatalf("again %t, left to do: %s", w.plan.Again, describe(w.plan))
		}
	})
}

// What Decide says does not depend on the order of what it was given, and it
// changes nothing of that.
func TestPropertyOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &faults{w: newWorld("b", "c")}
		for range rapid.IntRange(2, 20).Draw(t, "cycles") {
			f.act(t)
			f.w.turn()
		}
		o := f.w.observe()
		before := fmt.Sprintf("%v", f.w.memory)
		one := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if after := fmt.Sprintf("%v", f.w.memory); after != before {
			t.Fatalf("Decide changed its argument: %s", cmp.Diff(before, after))
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for name, fact := range o.Nodes {
			fact.Value.Slots = slices.Clone(fact.Value.Slots)
			r.Shuffle(len(fact.Value.Slots), func(i, j int) {
				fact.Value.Slots[i], fact.Value.Slots[j] = fact.Value.Slots[j], fact.Value.Slots[i]
			})
			o.Nodes[name] = fact
		}
		ms := o.Topology.Value.Members
		r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
		two := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if !reflect.DeepEqual(one.Steps, two.Steps) || !reflect.DeepEqual(one.Verdicts, two.Verdicts) || !reflect.DeepEqual(one.Conditions, two.Conditions) {
			t.Fatalf("another order, another plan: %s", cmp.Diff(one.Steps, two.Steps))
		}
	})
}

// One slot never changes what is done for another: without it, the others get
// the same changes and the same verdicts.
func TestPropertyOneSlotNeverChangesAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &faults{w: newWorld("b", "c")}
		for _, name := range slotNames {
			f.w.createSlot(name)
		}
		for range rapid.IntRange(2, 20).Draw(t, "cycles") {
			f.act(t)
			f.w.turn()
		}
		if f.w.primary() == nil {
			return
		}
		o := f.w.observe()
		whole := Decide(f.w.now, f.w.policy, o, f.w.memory)
		for name, fact := range o.Nodes { // app is broken in every way at once
			fact.Value.Slots = slices.Clone(fact.Value.Slots)
			for i := range fact.Value.Slots {
				if s := &fact.Value.Slots[i]; s.Name == "app" && name == whole.Primary {
					s.Invalidated, s.Restart = "wal_removed", cluster.None[cluster.LSN]()
				}
			}
			o.Nodes[name] = fact
		}
		broken := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if d := cmp.Diff(othersOf(whole), othersOf(broken)); d != "" {
			t.Fatal(d)
		}
	})
}

func othersOf(pl Plan) map[string]string {
	out := map[string]string{}
	for _, v := range pl.Verdicts {
		if v.Slot != "app" {
			out["verdict "+v.Slot+" "+v.Standby] = string(v.State) + " " + string(v.Reason) + " " + v.Message
		}
	}
	for _, s := range pl.Steps {
		for _, ch := range s.Changes {
			if ch.Name != "app" {
				out["change "+ch.Name+" "+s.Node] = fmt.Sprint(ch.Position)
			}
		}
		for _, n := range s.Names {
			if n != "app" && s.Kind == StepDrop {
				out["drop "+n+" "+s.Node] = s.ID
			}
		}
	}
	return out
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
