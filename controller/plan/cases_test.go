package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// settled is a world in which slot app is mirrored on b and c and all is quiet.
func settled(t *testing.T) *world {
	t.Helper()
	w := newWorld("b", "c")
	w.createSlot("app")
	w.turns(3)
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "app", "c", Safe, "")
	return w
}

func (w *world) mustBe(t *testing.T, slot, standby string, state State, reason Reason) {
	t.Helper()
	v := w.verdict(slot, standby)
	if v.State != state || v.Reason != reason {
		t.Fatalf("%s on %s is %s(%s) %q, want %s(%s)\nplan: %s", slot, standby, v.State, v.Reason, v.Message, state, reason, describe(w.plan))
	}
}

func describe(pl Plan) string {
	var b strings.Builder
	for _, s := range pl.Steps {
		b.WriteString("\n  " + s.ID + " needs " + strings.Join(s.Needs, ",") + ": " + s.Why)
	}
	return b.String()
}

func kinds(pl Plan) map[string]bool {
	ids := map[string]bool{}
	for _, s := range pl.Steps {
		ids[s.ID] = true
	}
	return ids
}

func TestNewSlotIsSafeInTheFirstCycleThatReadsIt(t *testing.T) {
	w := newWorld("b", "c")
	w.turn()
	w.createSlot("app")
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "app", "c", Safe, "")
	if w.has(CondHoldMissing) {
		t.Error("the first hold ever counts as one that was gone")
	}
	w.turn()
	if w.has(CondHoldMissing) {
		t.Error("hold_missing in the cycle after the first hold")
	}
	if len(w.plan.Steps) > 2 { // the WAL holds are cleared
		t.Fatalf("not quiet: %s", describe(w.plan))
	}
	w.turn()
	if len(w.plan.Steps) != 0 || w.plan.Again {
		t.Fatalf("again %t, not quiet: %s", w.plan.Again, describe(w.plan))
	}
}

func TestD01IdleSlotBesideABusyOne(t *testing.T) {
	w := settled(t)
	for range 5 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.createSlot("idle")
	w.replayAll()
	w.turn()
	w.mustBe(t, "idle", "b", Safe, "")
	for range 400 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.vacuum()
	w.mustBe(t, "idle", "b", Safe, "")
	if x := w.servers["b"].slots["idle"].CatalogXmin.V; !w.primary().removed.NotAfter(x) {
		t.Fatalf("rows up to %s are gone, idle needs %s", w.primary().removed, x)
	}
}

func TestD17HoldDroppedWhileTheSlotStillPins(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if !w.has(CondHoldMissing) || w.memory.Generation != 2 {
		t.Fatalf("generation %d, conditions %v", w.memory.Generation, w.conditions)
	}
	for _, c := range w.conditions {
		if c.Code == CondHoldMissing && (c.Severity != Warning || !strings.Contains(c.Message, "has been made again")) {
			t.Errorf("beside SAFE stands %s: %s", c.Severity, c.Message)
		}
	}
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if got := w.servers["b"].slots["app"].Marker.Generation; got != 2 {
		t.Errorf("app on b is of generation %d", got)
	}
}

func TestD17HoldDroppedAndRowsGone(t *testing.T) {
	w := settled(t)
	w.write(0x1000)
	end := w.primary().node.Insert.V
	delete(w.servers["a"].slots, cluster.HoldName)
	w.confirm("app", end-0x100, end, w.nextXID)
	w.vacuum()
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	if w.servers["b"].slots["app"] != nil {
		t.Error("the mirror is still there")
	}
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
}

func TestHoldVanishesBetweenReadAndCall(t *testing.T) {
	w := settled(t)
	w.createSlot("more") // needs nothing lowered: it inherits
	w.behind = func(s Step) {
		if s.Stage == StageLowerPrimary {
			delete(w.servers["a"].slots, cluster.HoldName)
		}
	}
	w.servers["a"].slots[cluster.HoldName].CatalogXmin = cluster.Some(cluster.XID(801))
	w.servers["a"].slots[cluster.HoldName].EffectiveCatalogXmin = cluster.Some(cluster.XID(801))
	generation := w.memory.Generation
	w.turn()
	if w.memory.Generation < generation+2 {
		t.Fatalf("generation %d: one for the raise that nobody made, one for the hold that was gone", w.memory.Generation)
	}
	for _, v := range w.verdicts {
		if v.State == Safe && v.Slot == "app" {
			t.Errorf("%+v", v)
		}
	}
	w.behind = nil
	w.turns(3)
	w.mustBe(t, "app", "b", Safe, "")
}

func TestUnsavedHoldCountsForNothingAndLosesNothing(t *testing.T) {
	w := settled(t)
	w.servers["a"].slots[cluster.HoldName].Saved = false
	w.createSlot("more")
	w.refuse = func(s Step) string {
		if s.Kind == StepHold {
			return "no space left on device"
		}
		return ""
	}
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonHoldNotSaved)
	for _, s := range w.plan.Steps {
		if s.Kind == StepDrop || s.Kind == StepApply || s.Kind == StepHold && len(s.Wants) > 0 && s.OnPrimary {
			t.Errorf("step %s", s.ID)
		}
	}
	w.refuse = nil
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "more", "b", Safe, "")
	if w.memory.Generation != 1 {
		t.Errorf("generation %d", w.memory.Generation)
	}
}

func TestC10PrimaryBehindItsMirror(t *testing.T) {
	w := settled(t)
	old := *w.servers["a"].slots["app"]
	w.catchUp("app")
	w.replayAll()
	w.turn()
	at := w.verdict("app", "b").Mirror
	w.servers["a"].slots["app"].Confirmed = old.Confirmed
	w.servers["a"].slots["app"].Restart = old.Restart
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if !w.has(CondPrimaryBehindMirror) || w.verdict("app", "b").Mirror != at {
		t.Fatalf("conditions %v, mirror %v", w.conditions, w.verdict("app", "b").Mirror)
	}
	if kinds(w.plan)["apply/b"] {
		t.Errorf("a change was sent: %s", describe(w.plan))
	}
	w.catchUp("app")
	w.replayAll()
	w.turn()
	if w.has(CondPrimaryBehindMirror) {
		t.Errorf("it stays: %v", w.conditions)
	}
}

func TestC11RecreatedSlotIsReplacedWhole(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.createSlot("app")
	s := w.servers["a"].slots["app"]
	s.Plugin, s.Confirmed, s.Restart = "test_decoding", cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x2ff00))
	w.turn()
	if !w.has(CondSlotRecreated) || !w.has(CondMirrorReplaced) {
		t.Fatalf("conditions %v", w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
	if m := w.servers["b"].slots["app"]; m.Plugin != "test_decoding" || m.Confirmed.V != 0x30000 {
		t.Errorf("the mirror is %+v", m)
	}
}

func TestC14LostSlotTouchesNoOther(t *testing.T) {
	w := settled(t)
	w.createSlot("more")
	w.turn()
	lost := w.servers["a"].slots["app"]
	lost.Invalidated, lost.Restart = "wal_removed", cluster.None[cluster.LSN]()
	w.catchUp("more")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Lost, ReasonWALRemoved)
	w.mustBe(t, "more", "b", Safe, "")
	if w.verdict("more", "b").LagBytes.V != 0 {
		t.Error("more does not follow")
	}
	// Only on the standby: the mirror is dropped and made again.
	w.servers["b"].slots["more"].Invalidated = "wal_removed"
	w.turn()
	w.mustBe(t, "more", "b", Lost, ReasonWALRemoved)
	w.mustBe(t, "more", "c", Safe, "")
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
}

func TestKeptReadsServeADelayedStandby(t *testing.T) {
	w := newWorld("b", "c")
	w.createSlot("app")
	w.turns(2)
	var ends []cluster.LSN
	for range 700 {
		w.catchUp("app")
		end := w.primary().node.Insert.V
		ends = append(ends, end)
		w.replay("b", end)
		w.receive("c", end)
		if len(ends) > 500 { // ten seconds behind
			w.replay("c", ends[len(ends)-501])
		}
		w.turn()
	}
	w.mustBe(t, "app", "c", Safe, "")
	replay, mirror := w.servers["c"].node.Replay.V, w.servers["c"].slots["app"].Confirmed.V
	if mirror > replay || replay-mirror > 0x1000*150 {
		t.Errorf("the mirror is at %s, replay at %s", mirror, replay)
	}
	if kept := w.memory.Kept["app"]; len(kept) > maxKept {
		t.Errorf("%d reads are kept", len(kept))
	}
	if lag := w.verdict("app", "b").LagBytes; lag.V != 0 {
		t.Errorf("b is %d behind", lag.V)
	}
	for _, k := range w.memory.Kept["app"] {
		if !w.primary().slots[cluster.HoldName].CatalogXmin.V.NotAfter(k.Position.CatalogXmin) {
			t.Fatalf("the hold is past a kept read at %s", k.Position.CatalogXmin)
		}
	}
}

func TestD20GoneFileIsShippedAgain(t *testing.T) {
	w := settled(t)
	w.servers["b"].slots["app"].Snapshot = cluster.SnapshotAbsent
	o := w.observe()
	pl := Decide(w.now, w.policy, o, w.memory)
	if v := pl.Verdicts[0]; v.State != Pending || v.Reason != ReasonBadSnapshot {
		t.Fatalf("observed %+v", v)
	}
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if !kinds(w.plan)["apply/b"] {
		t.Fatalf("%s", describe(w.plan))
	}
}

func TestUnprovableSlotIsNotWalkedInEachCycle(t *testing.T) {
	w := settled(t)
	w.createSlot("more")
	calls := 0
	w.provable = func(ch cluster.Change) bool {
		if ch.Name == "more" {
			calls++
			return false
		}
		return true
	}
	for range 40 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.mustBe(t, "more", "b", Pending, ReasonNoConsistentPoint)
	w.mustBe(t, "app", "b", Safe, "")
	if calls > 4 {
		t.Errorf("%d walks in 800 ms", calls)
	}
	w.provable = nil
	w.catchUp("more")
	w.replayAll()
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
}

func TestWaitingForReplayWakesSoonThenLessOften(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.turn()
	w.now = w.now.Add(-20 * time.Millisecond)
	w.turn()
	if w.plan.Again || w.plan.Wake != leastWake {
		t.Errorf("again %t, wake %s", w.plan.Again, w.plan.Wake)
	}
	w.now = w.now.Add(2 * time.Second)
	w.turn()
	if w.plan.Wake < 400*time.Millisecond {
		t.Errorf("wake %s after two seconds", w.plan.Wake)
	}
}

func TestOneRefusedWantStopsOnlyItsSlot(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.createSlot("more")
	w.behind = func(s Step) {
		if s.Stage == StageLowerPrimary { // more moves on between the read and the call
			x := cluster.Some(w.servers["a"].slots["more"].CatalogXmin.V + 5)
			w.servers["a"].slots["more"].CatalogXmin, w.servers["a"].slots["more"].EffectiveCatalogXmin = x, x
		}
	}
	w.servers["a"].slots["app"].CatalogXmin = cluster.Some(cluster.XID(850))
	w.servers["a"].slots["app"].EffectiveCatalogXmin = cluster.Some(cluster.XID(850))
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "more", "b", Pending, ReasonBusy)
	w.behind = nil
	w.turns(2)
	w.mustBe(t, "more", "b", Safe, "")
}

// C12: two-phase is turned on for a slot, then turned off and on again between
// two reads. It is the same slot, and its mirror gets both fields with a position
// that was read with them.
func TestC12TwoPhaseTurnedOn(t *testing.T) {
	w := settled(t)
	p := w.primary().slots["app"]
	p.TwoPhase, p.TwoPhaseAt = true, p.Confirmed
	w.turns(2)
	for _, node := range []string{"b", "c"} {
		w.mustBe(t, "app", node, Safe, "")
		if m := w.servers[node].slots["app"]; !m.TwoPhase || m.TwoPhaseAt != p.TwoPhaseAt {
			t.Errorf("the mirror on %s has two-phase %t at %v, the slot at %v", node, m.TwoPhase, m.TwoPhaseAt, p.TwoPhaseAt)
		}
	}
	if w.has(CondSlotRecreated) {
		t.Error("the slot counts as another one")
	}

	p.TwoPhaseAt = cluster.Some(p.Confirmed.V - 0x10)
	w.turns(2)
	if m := w.servers["b"].slots["app"]; m.TwoPhaseAt != p.TwoPhaseAt {
		t.Errorf("the mirror is left with two-phase at %v, the slot has it at %v", m.TwoPhaseAt, p.TwoPhaseAt)
	}
}

// C12: a standby that lags is never given a read of before with two-phase.
func TestC12TwoPhaseOnALaggingStandby(t *testing.T) {
	w := settled(t)
	p := w.primary().slots["app"]
	w.catchUp("app") // b does not replay it
	w.turn()
	p.TwoPhase, p.TwoPhaseAt = true, p.Confirmed
	w.turns(2)
	w.mustBe(t, "app", "b", Pending, ReasonReceiveLag)
	if m := w.servers["b"].slots["app"]; m.TwoPhase {
		t.Errorf("the mirror has two-phase at %v and stands at %v", m.TwoPhaseAt, m.Confirmed)
	}
}
