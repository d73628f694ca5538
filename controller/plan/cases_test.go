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

func TestNoPrimaryChangesNothing(t *testing.T) {
	w := settled(t)
	before := w.verdict("app", "b")
	w.servers["a"].up = false
	w.now = w.now.Add(7 * time.Second)
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondNoLeader) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
	v := w.verdict("app", "b")
	if v.State != Safe || !v.Since.Equal(before.Since) || v.ProofAge.V < 7*time.Second {
		t.Fatalf("verdict %+v", v)
	}
	delete(w.servers["c"].slots, "app")
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonSlotMissing)
}

func TestSplitBrainWritesNowhere(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.servers["a"].up = true
	w.createSlot("more")
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondSplitBrain) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
	w.servers["a"].up = false
	w.turn()
	if w.memory.Primary != "b" || w.has(CondSplitBrain) {
		t.Fatalf("primary %q, conditions %v", w.memory.Primary, w.conditions)
	}
	// The new primary falls silent while the old one is back: it is not taken for one.
	w.servers["b"].up, w.servers["a"].up = false, true
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondSplitBrain) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
}

func TestRestoredPrimaryIsNotFollowed(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.turn()
	w.servers["b"].node.Timeline = 1
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondTimelineReset) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
}

func TestAnotherSystemIsRefused(t *testing.T) {
	w := settled(t)
	w.servers["c"].node.SystemID = 99
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonWrongEndpoint)
	w.mustBe(t, "app", "b", Safe, "")
	for _, s := range w.plan.Steps {
		if s.Node == "c" {
			t.Errorf("a step for it: %s", s.ID)
		}
	}
}

func TestPromotionKeepsTheMirrorsOfTheOthers(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.turns(2)
	w.mustBe(t, "app", "c", Safe, "")
	w.mustBe(t, "app", "a", Unknown, ReasonUnreachable)
	if m := w.servers["b"].slots["app"].Marker; m.Kind != cluster.MarkOriginal {
		t.Errorf("app on b is marked %s", m.Kind)
	}
	if w.servers["b"].slots[cluster.WALHoldName] != nil {
		t.Error("the WAL hold is still on the new primary")
	}
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if lag := w.verdict("app", "c").LagBytes; lag.V != 0 {
		t.Errorf("lag %v", lag)
	}
	if w.has(CondSlotRecreated) || w.has(CondMirrorReplaced) {
		t.Errorf("conditions %v", w.conditions)
	}
}

func TestD21HoldOfTheNewPrimaryOfAnotherGeneration(t *testing.T) {
	w := settled(t)
	// b's hold is not reached by the new generation that the loss of a's hold begins.
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = func(s Step) string {
		if s.Node == "b" {
			return "connection reset"
		}
		return ""
	}
	w.turn()
	w.refuse = nil
	w.mustBe(t, "app", "c", Safe, "")
	w.promote("b")
	w.turn()
	if v := w.verdict("app", "c"); v.State == Safe {
		t.Fatalf("app on c is SAFE: %+v", v)
	}
	if w.servers["b"].slots["app"] != nil {
		t.Error("what was not stamped on b is still there for a consumer")
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

func TestC17NoFreeSlot(t *testing.T) {
	w := newWorld("b")
	w.servers["b"].node.MaxSlots = 4
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		w.createSlot(name)
	}
	w.turns(3)
	for slot, reason := range map[string]Reason{"a": "", "b": "", "c": ReasonNoFreeSlot, "d": ReasonNoFreeSlot, "e": ReasonNoFreeSlot} {
		if v := w.verdict(slot, "b"); v.Reason != reason {
			t.Errorf("%s: %s %q", slot, v.Reason, v.Message)
		}
	}
	if m := w.verdict("c", "b").Message; !strings.Contains(m, "7 are needed, 4 are available") {
		t.Error(m)
	}
	w.createSlot("0")
	w.turns(3)
	w.mustBe(t, "0", "b", Unsafe, ReasonNoFreeSlot)
	w.mustBe(t, "b", "b", Safe, "")
	if len(w.plan.Steps) != 0 {
		t.Errorf("thrash: %s", describe(w.plan))
	}
}

func TestC28ForeignSlots(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	tmp := w.createSlot("tmp")
	tmp.Temporary = true
	for _, s := range []cluster.Slot{
		{Name: "app", Kind: cluster.Logical, Plugin: "pgoutput", Restart: cluster.Some(cluster.LSN(1)), Confirmed: cluster.Some(cluster.LSN(2)), CatalogXmin: cluster.Some(cluster.XID(700))},
		{Name: "theirs", Kind: cluster.Logical, ActivePID: 4},
		{Name: "physical", Kind: cluster.Physical},
	} {
		w.servers["b"].slots[s.Name] = &s
	}
	w.turns(4)
	w.mustBe(t, "app", "b", Unsafe, ReasonNotOurs)
	if len(w.verdicts) != 1 {
		t.Errorf("verdicts %v", w.verdicts)
	}
	for _, name := range []string{"app", "theirs", "physical"} {
		if s := w.servers["b"].slots[name]; s == nil || s.Marker != nil {
			t.Errorf("%s was touched", name)
		}
	}
}

func TestRemovalNeedsTwoReads(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, "app")
	w.turn()
	if kinds(w.plan)["drop/b"] {
		t.Fatal("dropped after one read")
	}
	w.servers["a"].up = false
	w.turns(3)
	w.servers["a"].up = true
	w.servers["b"].slots["app"].ActivePID = 9
	w.turn()
	if !kinds(w.plan)["drop/c"] || kinds(w.plan)["drop/b"] {
		t.Fatalf("want a drop on c only: %s", describe(w.plan))
	}
	w.servers["b"].slots["app"].ActivePID = 0
	w.turns(2)
	if len(w.servers["b"].mirrors()) != 0 || len(w.memory.Slots) != 0 {
		t.Errorf("left: %v, notes %v", w.servers["b"].mirrors(), w.memory.Slots)
	}
}

func TestLosingTheLeadershipStartsTheCountAnew(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, "app")
	w.turn()
	w.memory.Epoch++
	w.turn()
	if kinds(w.plan)["drop/b"] {
		t.Fatal("two reads of two epochs are not two reads")
	}
	if w.plan.Steps[0].Stage != StageFence || w.plan.Steps[0].Fence.Epoch != 11 {
		t.Errorf("no fence first: %s", describe(w.plan))
	}
	w.turn()
	if !kinds(w.plan)["drop/b"] {
		t.Fatal("not dropped")
	}
}

func TestC22DemotedPrimaryFollows(t *testing.T) {
	w := settled(t)
	w.write(0x5000) // what never reaches anybody
	w.confirm("app", 0x34000, 0x34800, w.nextXID)
	w.turn()
	w.promote("b")
	w.turn()
	a := w.servers["a"]
	b := w.servers["b"]
	a.up, a.node.InRecovery, a.node.Timeline, a.node.History = true, true, 2, b.node.History
	a.node.Replay, a.node.Receive = b.node.Insert, b.node.Insert
	w.turns(3)
	w.mustBe(t, "app", "a", Safe, "")
	if m := a.slots["app"]; m.Marker.Kind != cluster.MarkMirror || m.Confirmed.V != b.slots["app"].Confirmed.V {
		t.Errorf("app on a is %+v", m)
	}
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

func TestD23RebootHoldsAndGivingUpDoesNot(t *testing.T) {
	w := settled(t)
	w.servers["c"].up = false
	x := w.servers["c"].slots["app"].CatalogXmin.V
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.vacuum()
	if !w.primary().removed.NotAfter(x) {
		t.Fatalf("rows of c's mirror are gone after twenty minutes")
	}
	for range 60 {
		w.now = w.now.Add(time.Minute)
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	if !w.has(CondHoldAge) || w.memory.Generation != 2 {
		t.Fatalf("generation %d, conditions %v", w.memory.Generation, w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
	w.vacuum()
	if w.primary().removed.NotAfter(x) {
		t.Fatal("the hold was not raised")
	}
	// D21: a slot born late takes nothing as a proof for the mirror that was left behind.
	hold := w.primary().slots[cluster.HoldName]
	hold.CatalogXmin, hold.EffectiveCatalogXmin = cluster.Some(x), cluster.Some(x)
	w.servers["c"].up = true
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
	w.replayAll()
	w.turns(2)
	w.mustBe(t, "app", "c", Safe, "")
}

func TestForgottenMemberIsGivenUpAtOnce(t *testing.T) {
	w := settled(t)
	delete(w.servers, "c")
	w.memory.Forgotten = map[string]bool{"c": true}
	w.turn()
	if !w.memory.Standbys["c"].GivenUp || w.memory.Generation != 2 {
		t.Fatalf("%+v", w.memory.Standbys["c"])
	}
}

func TestNewLeaderRaisesNothingBeforeItHasReadAll(t *testing.T) {
	w := settled(t)
	x := w.servers["c"].slots["app"].CatalogXmin.V
	w.servers["c"].up = false
	w.memory = Memory{Epoch: 11, Store: store, Standbys: map[string]NodeNote{"c": {}}} // a ledger that is nearly empty
	for range 5 {
		w.now = w.now.Add(10 * time.Second)
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	if got := w.primary().slots[cluster.HoldName].CatalogXmin.V; !got.NotAfter(x) {
		t.Fatalf("raised to %s, c needs %s", got, x)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

func TestFenceIsRaisedFirstAndAgain(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.turn()
	if got := w.plan.Steps; got[0].ID != "fence/a" || got[1].ID != "fence/b" {
		t.Fatalf("%s", describe(w.plan))
	}
	for _, s := range w.plan.Steps[2:] {
		if s.Needs[0] != "fence/"+s.Node {
			t.Errorf("%s needs %v", s.ID, s.Needs)
		}
	}
	w.turns(5)
	if kinds(w.plan)["fence/a"] {
		t.Error("the heartbeat is too fast")
	}
	w.now = w.now.Add(10 * time.Second)
	w.turn()
	if !kinds(w.plan)["fence/a"] {
		t.Error("no heartbeat")
	}
}

func TestForeignFence(t *testing.T) {
	w := settled(t)
	other := w.servers["b"].node.Fence.V
	other.Store = "store-2"
	w.servers["b"].node.Fence = cluster.Some(other)
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonFenced)
	w.mustBe(t, "app", "c", Safe, "")
	if !w.has(CondForeignEpoch) {
		t.Errorf("conditions %v", w.conditions)
	}
	later := w.servers["a"].node.Fence.V
	later.Epoch = 99
	w.servers["a"].node.Fence = cluster.Some(later)
	w.turn()
	if len(w.plan.Steps) != 0 {
		t.Errorf("steps in spite of a later controller: %s", describe(w.plan))
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

func TestSlotThatDidNotComeThroughThePromotion(t *testing.T) {
	w := settled(t)
	w.createSlot("late")
	w.refuse = func(s Step) string {
		if s.Node == "b" && s.Kind == StepApply {
			return "timeout"
		}
		return ""
	}
	w.turn()
	w.mustBe(t, "late", "b", Pending, ReasonBusy)
	w.refuse = nil
	w.promote("b")
	w.turns(3)
	if !w.has(CondSlotMissing) {
		t.Errorf("conditions %v", w.conditions)
	}
	if w.servers["b"].slots["late"] != nil {
		t.Error("it was made at the current position")
	}
}

func TestGenerationIsLearnedFromMarkers(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.turns(2)
	w.memory = Memory{Epoch: 12, Store: store}
	w.turn()
	if w.memory.Generation != 2 {
		t.Fatalf("generation %d", w.memory.Generation)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

func TestUsedHoldOfAStandbyIsMadeAnew(t *testing.T) {
	w := settled(t)
	w.servers["b"].slots[cluster.HoldName].Restart = cluster.Some(cluster.LSN(5))
	w.turns(2)
	if h := w.servers["b"].slots[cluster.HoldName]; h == nil || h.Restart.OK {
		t.Fatalf("hold %+v", h)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

func TestUsedHoldOfThePrimaryBeginsANewGeneration(t *testing.T) {
	w := settled(t)
	w.servers["a"].slots[cluster.HoldName].Restart = cluster.Some(cluster.LSN(5))
	w.turns(2)
	if h := w.servers["a"].slots[cluster.HoldName]; h == nil || h.Restart.OK || h.Marker.Generation != 2 {
		t.Fatalf("hold %+v", h)
	}
	w.mustBe(t, "app", "b", Safe, "")
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
