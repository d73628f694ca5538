package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

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
	w := newWorldAt(next, "b", "c")
	w.policy.ManageOldSessions = rapid.Bool().Draw(t, "old sessions are ended")
	for range rapid.IntRange(0, 3).Draw(t, "slots, rows and sessions before there is a controller") {
		if name := rapid.SampledFrom(slotNames).Draw(t, "slot"); w.primary().slots[name] == nil {
			w.createSlot(name)
		}
		w.outdate()
		w.replayAll()
		w.connect(w.servers[rapid.SampledFrom([]string{"b", "c"}).Draw(t, "server")], "psql", rapid.Bool().Draw(t, "busy"))
	}
	return &faults{w: w}
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

// A crash takes confirmed_flush_lsn back to what was saved, and is nobody's action.
func neverBackward(f *faults) string {
	for name, s := range f.w.servers {
		if !s.node.Started.Equal(f.starts[name]) {
			continue
		}
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
		if pr := &w.plan.pairs[i]; pr.verdict.State == Safe && !pr.send && unexplained(f, pr) {
			return fmt.Sprintf("%s on %s stands at %+v, could go on to %+v, and nothing says why it does not", pr.t.slot.Name, pr.node, pr.mirror.Confirmed, pr.t.kept[pr.best].Position)
		}
	}
	if w.primary() == nil || w.plan.Primary == "" {
		return ""
	}
	for name, at := range w.servers {
		if w.unlisted[name] && !at.up {
			continue
		}
		for slot, s := range f.before[w.plan.Primary] {
			if name != w.plan.Primary && w.policy.Selected(s) && !w.memory.Slots[slot].Unproven && seen[Pair{slot, name}] != 1 {
				return fmt.Sprintf("%s on %s has %d verdicts", slot, name, seen[Pair{slot, name}])
			}
		}
	}
	return ""
}

func unexplained(f *faults, pr *pair) bool {
	if pr.server || pr.best < 0 || pr.mirror == nil {
		return false
	}
	at, _ := pr.mirror.Position()
	next := pr.t.kept[pr.best].Position
	tried := !pr.note.Tried.At.IsZero()
	return next != at && !next.Behind(at) && !tried && !pr.t.held && pr.mirror.ActivePID == 0 && f.holdRead(pr.node).state != holdUnsettled
}

// holdRead is a node's hold as this cycle's read had it.
func (f *faults) holdRead(node string) hold {
	c := &cycle{p: f.w.policy}
	return c.examineHold(slices.Collect(maps.Values(f.before[node])))
}
