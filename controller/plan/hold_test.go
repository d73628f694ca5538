package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func (w *world) hold(node string) *cluster.Slot { return w.servers[node].slots[cluster.HoldName] }

func setXmin(s *cluster.Slot, x cluster.XID) {
	s.CatalogXmin, s.EffectiveCatalogXmin = cluster.Some(x), cluster.Some(x)
}

func TestHoldRaisedPastAMirror(t *testing.T) {
	w := settled(t)
	w.catchUp("app") // app itself no longer pins what its mirrors need
	setXmin(w.hold("a"), w.nextXID)
	w.vacuum()
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	if w.memory.Generation != 2 || w.servers["b"].slots["app"] != nil {
		t.Fatalf("generation %d, app on b %+v", w.memory.Generation, w.servers["b"].slots["app"])
	}
}

// The hold was gone while b could not be reached; later a slot is born so far
// back that the new hold looks low enough for what is left on b.
func TestD21ALowHoldProvesNothingForTheTimeBefore(t *testing.T) {
	w := settled(t)
	w.servers["b"].up = false
	w.catchUp("app")
	delete(w.servers["a"].slots, cluster.HoldName)
	w.vacuum()
	w.turn()
	born := w.createSlot("born")
	setXmin(born, 727)
	w.turns(2)
	if x := w.hold("a").CatalogXmin.V; x != 727 {
		t.Fatalf("the hold is at %s", x)
	}
	w.servers["b"].up = true
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
}

func TestD21HoldOfTheNewPrimaryWasSetInRecovery(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = func(s Step) string {
		if s.ID == "lower/b" { // b's hold stays in the old generation, its mirrors do not
			return "connection reset"
		}
		return ""
	}
	w.turn()
	w.refuse = nil
	w.promote("b")
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
	w.turns(3)
	w.mustBe(t, "app", "c", Safe, "")
}

func TestGapBetweenReadAndCallIsNoContinuity(t *testing.T) {
	w := settled(t)
	old := w.createSlot("old")
	setXmin(old, 750)
	w.behind = func(s Step) {
		if s.Stage == StageLowerPrimary {
			delete(w.servers["a"].slots, cluster.HoldName)
			w.catchUp("app")
		}
	}
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	for _, k := range w.memory.Kept["app"] {
		if k.HoldPinned {
			t.Errorf("a kept read counts as held: %+v", k)
		}
	}
	w.behind = nil
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	w.replayAll()
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
}

func TestGapWhereTheHoldVanishedBeforeItWasWritten(t *testing.T) {
	w := settled(t)
	w.servers["b"].slots["app"].Marker.Generation, w.memory.Generation = 1, 1
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = steps(StepHold)
	w.turns(5)
	if w.memory.Generation != 2 {
		t.Errorf("generation %d: one loss begins one generation, however often it cannot be mended", w.memory.Generation)
	}
}

func TestKeptReadsHoldTheRaiseBack(t *testing.T) {
	w := newWorld("b", "c")
	w.createSlot("app")
	w.servers["c"].node.Replay = cluster.Some(cluster.LSN(0x2f000)) // c has no mirror to speak for it
	for range 20 {
		w.turn()
		w.now = w.now.Add(time.Second)
		w.catchUp("app")
		w.replay("b", w.primary().node.Insert.V)
	}
	w.vacuum()
	w.mustBe(t, "app", "c", Pending, ReasonReplayLag)
	w.replay("c", 0x30000)
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if at := w.servers["c"].slots["app"].Confirmed.V; at != 0x30000 {
		t.Errorf("made at %s", at)
	}
}

func TestRaisesAreRareAndReachAllNodes(t *testing.T) {
	w := settled(t)
	raised := 0
	for range 100 { // two seconds
		w.catchUp("app")
		w.replayAll()
		w.turn()
		if kinds(w.plan)["raise/a"] {
			raised++
			if !kinds(w.plan)["raise/b"] || !kinds(w.plan)["raise/c"] {
				t.Errorf("not everywhere: %s", describe(w.plan))
			}
		}
	}
	if raised != 1 {
		t.Errorf("%d raises in two seconds", raised)
	}
}

func TestUnreadAnswerOfApplyHoldsTheRaiseBack(t *testing.T) {
	w := newWorld("b", "c")
	w.turn()
	w.createSlot("app")
	x := w.servers["a"].slots["app"].CatalogXmin.V
	w.lose = func(s Step) bool { return s.Node == "c" && s.Kind == StepApply }
	w.turn()
	w.servers["c"].up = false
	for range 20 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
		w.now = w.now.Add(time.Second)
	}
	if got := w.hold("a").CatalogXmin.V; !got.NotAfter(x) {
		t.Fatalf("raised to %s, the mirror that c made needs %s", got, x)
	}
}

func TestEachLeadershipReadsAllBeforeItRaises(t *testing.T) {
	w := newWorld("b", "c")
	w.servers["c"].node.WalLevel = "replica" // no mirrors there
	w.createSlot("app")
	w.turns(3)
	w.servers["c"].up = false
	w.memory.Epoch++
	for range 20 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
		w.now = w.now.Add(time.Second)
		if kinds(w.plan)["raise/a"] {
			t.Fatal("raised before c was read")
		}
	}
}

func TestMemberWithoutMirrorsHoldsNothingBack(t *testing.T) {
	w := newWorld("b", "c")
	w.servers["c"].node.WalLevel = "replica"
	w.createSlot("app")
	w.turns(3)
	w.servers["c"].up = false
	w.turn()
	w.now = w.now.Add(2 * time.Hour)
	w.turn()
	if w.memory.Generation != 1 || w.has(CondHoldAge) {
		t.Errorf("generation %d, conditions %v", w.memory.Generation, w.conditions)
	}
}

func TestHoldOfAStandbyCoversTheMirrorsOfTheOthers(t *testing.T) {
	w := settled(t)
	x := w.servers["c"].slots["app"].CatalogXmin.V
	for range 3 {
		w.catchUp("app")
		w.replay("b", w.primary().node.Insert.V)
		w.turn()
	}
	delete(w.servers["b"].slots, cluster.HoldName)
	w.turn()
	if h := w.hold("b"); h == nil || !h.CatalogXmin.V.NotAfter(x) {
		t.Fatalf("b's hold is %+v, c's mirror needs %s", h, x)
	}
	w.promote("b")
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
}

func TestUnsavedHoldOfAStandbyIsSavedAsItIs(t *testing.T) {
	w := settled(t)
	w.hold("b").Saved = false
	setXmin(w.createSlot("old"), 750)
	w.turn()
	for _, s := range w.plan.Steps {
		if s.ID == "lower/b" && len(s.Wants) != 0 {
			t.Errorf("wants %v", s.Wants)
		}
	}
	w.turns(2)
	w.mustBe(t, "old", "b", Safe, "")
}

func TestStandbysAreLoweredAfterThePrimary(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.turn()
	at := map[string]int{}
	for i, s := range w.plan.Steps {
		at[s.ID] = i + 1
		if s.ID == "lower/b" && s.Needs[len(s.Needs)-1] != "lower/a" {
			t.Errorf("lower/b needs %v", s.Needs)
		}
	}
	if at["lower/a"] == 0 || at["lower/a"] > at["lower/b"] || at["lower/b"] > at["apply/b/held"] {
		t.Errorf("order %s", describe(w.plan))
	}
}

// What covers a mirror, rule by rule: the model's directories always have a
// birth time, and its slots never pin less than they did.
func TestProtectionRules(t *testing.T) {
	source := cluster.Incarnation{Inode: 7} // a file system without birth times
	for _, tc := range []struct {
		name             string
		hold             hold
		markerTimeline   cluster.Timeline
		markerGeneration int64
		source           cluster.Incarnation
		recreated        bool
		slotPins         cluster.XID
		want             protection
	}{
		{"whole", hold{state: holdValid, xmin: 700, generation: 3}, 2, 3, source, false, 900, protWhole},
		{"held throughout", hold{state: holdValid, xmin: 700, generation: 3}, 2, 2, source, false, 900, protContinuous},
		{"held in an older generation", hold{state: holdValid, xmin: 700, generation: 2}, 2, 3, source, false, 900, protContinuous},
		{"left behind", hold{state: holdValid, xmin: 700, generation: 3}, 2, 1, source, false, 900, protGap},
		{"held from later on", hold{state: holdValid, xmin: 801, generation: 3}, 2, 3, source, false, 900, protGap},
		{"not held, the slot pins", hold{state: holdMissing}, 2, 3, source, false, 800, protWitnessed},
		{"not held, the slot pins from later on", hold{state: holdMissing}, 2, 3, source, false, 801, protGap},
		{"not held, a slot of an earlier timeline", hold{state: holdMissing}, 1, 3, source, false, 800, protGap},
		{"not held, another directory", hold{state: holdMissing}, 2, 3, cluster.Incarnation{Inode: 8}, false, 800, protGap},
		{"not held, made again", hold{state: holdMissing}, 2, 3, source, true, 800, protGap},
		{"not saved", hold{state: holdUnsettled, xmin: 700, generation: 3}, 2, 3, source, false, 800, protUnsettled},
	} {
		c := &cycle{hold: tc.hold, floors: map[string]int64{"b": 2}, m: Memory{Timeline: 2, Generation: 3}}
		tr := &tracked{recreated: tc.recreated, slot: cluster.Slot{Incarnation: source, EffectiveCatalogXmin: cluster.Some(tc.slotPins)}}
		mirror := cluster.Slot{CatalogXmin: cluster.Some(cluster.XID(800)), Marker: &cluster.Marker{Timeline: tc.markerTimeline, Generation: tc.markerGeneration, Source: tc.source}}
		if got := c.protectionOf(tr, "b", mirror); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestKeptReadsAreCoveredOrGone(t *testing.T) {
	source := cluster.Incarnation{Inode: 7, Birth: cluster.Some(epochZero)}
	for _, tc := range []struct {
		name   string
		hold   hold
		pinned bool
		slot   cluster.XID
		stays  bool
		held   bool
	}{
		{"held since the slot pinned it", hold{state: holdValid, xmin: 700}, true, 900, true, true},
		{"pinned by both", hold{state: holdValid, xmin: 700}, false, 800, true, true},
		{"a hold that may have come too late", hold{state: holdValid, xmin: 700}, false, 900, false, false},
		{"pinned by the slot only", hold{state: holdMissing}, true, 800, true, false},
		{"pinned by nothing", hold{state: holdMissing}, true, 900, false, false},
		{"the hold is past it", hold{state: holdValid, xmin: 801}, true, 900, false, false},
	} {
		c := &cycle{hold: tc.hold}
		tr := &tracked{slot: cluster.Slot{Incarnation: source, EffectiveCatalogXmin: cluster.Some(tc.slot)},
			kept: []Kept{{Position: cluster.Position{CatalogXmin: 800}, HoldPinned: tc.pinned, Source: source}}}
		got := c.covered(tr)
		if stays := len(got) == 1; stays != tc.stays || stays && got[0].HoldPinned != tc.held {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestExamineHold(t *testing.T) {
	good := func() cluster.Slot {
		return cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical, CatalogXmin: cluster.Some(cluster.XID(800)), EffectiveCatalogXmin: cluster.Some(cluster.XID(800)),
			Saved: true, Marker: &cluster.Marker{Kind: cluster.MarkHold, Scope: scope, Generation: 4}}
	}
	for _, tc := range []struct {
		name  string
		spoil func(*cluster.Slot)
		want  holdState
	}{
		{"good", func(*cluster.Slot) {}, holdValid},
		{"of another name", func(s *cluster.Slot) { s.Name = "other" }, holdMissing},
		{"no marker", func(s *cluster.Slot) { s.Marker = nil }, holdForeign},
		{"another scope's", func(s *cluster.Slot) { s.Marker.Scope = "other" }, holdForeign},
		{"marked as something else", func(s *cluster.Slot) { s.Marker.Kind = cluster.MarkWAL }, holdForeign},
		{"invalidated", func(s *cluster.Slot) { s.Invalidated = "wal_removed" }, holdGone},
		{"with a restart_lsn", func(s *cluster.Slot) { s.Restart = cluster.Some(cluster.LSN(1)) }, holdGone},
		{"with an xmin", func(s *cluster.Slot) { s.Xmin = cluster.Some(cluster.XID(800)) }, holdGone},
		{"without a catalog_xmin", func(s *cluster.Slot) { s.CatalogXmin = cluster.None[cluster.XID]() }, holdGone},
		{"in somebody's hands", func(s *cluster.Slot) { s.ActivePID = 1 }, holdUnsettled},
		{"not saved", func(s *cluster.Slot) { s.Saved = false }, holdUnsettled},
		{"not in effect", func(s *cluster.Slot) { s.EffectiveCatalogXmin = cluster.None[cluster.XID]() }, holdUnsettled},
		{"in effect from later on", func(s *cluster.Slot) { s.EffectiveCatalogXmin = cluster.Some(cluster.XID(801)) }, holdUnsettled},
	} {
		s := good()
		tc.spoil(&s)
		c := &cycle{p: Policy{Scope: scope}}
		if got := c.examineHold([]cluster.Slot{s}); got.state != tc.want || got.state != holdValid && got.why == "" {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestSlotStillBeingMadeHoldsTheRaiseBack(t *testing.T) {
	w := settled(t)
	making := w.createSlot("making") // it waits for an open transaction
	making.Confirmed = cluster.None[cluster.LSN]()
	x := making.CatalogXmin.V
	for range 20 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
		w.now = w.now.Add(time.Second)
	}
	if got := w.hold("a").CatalogXmin.V; !got.NotAfter(x) {
		t.Fatalf("raised to %s, the slot has %s", got, x)
	}
}
