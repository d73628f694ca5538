package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestNothingIsSentWhileThePrimaryIsBehind(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.turn() // kept, not replayed yet
	app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x30080))
	app(w, "a").Restart = cluster.Some(cluster.LSN(0x2ff00))
	w.replayAll()
	w.turn()
	if kinds(w.plan)["apply/b"] {
		t.Fatalf("sent: %s", describe(w.plan))
	}
	w.mustBe(t, "app", "b", Safe, "")
}

func TestRestartAloneGoingBackIsHeld(t *testing.T) {
	w := settled(t)
	app(w, "a").Restart = cluster.Some(cluster.LSN(0x2fe00))
	w.turn()
	if !w.has(CondPrimaryBehindMirror) || len(w.plan.Steps) != 0 {
		t.Fatalf("conditions %v, %s", w.conditions, describe(w.plan))
	}
}

func TestForgetfulLeaderBelievesItsMirrors(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x30f00)) // a crash
	w.memory = Memory{Epoch: 11, Store: store}
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	if !w.has(CondPrimaryBehindMirror) {
		t.Errorf("conditions %v", w.conditions)
	}
}

// c was ahead of b when b was promoted: what its mirror holds is true on the
// new timeline too, and the new primary's slot comes to it.
func TestMirrorAheadOfThePromotedOneStays(t *testing.T) {
	w := settled(t)
	w.refuse = steps(StepApply)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.refuse = nil
	at := w.servers["c"].slots["app"].Confirmed
	if at.V <= w.servers["b"].slots["app"].Confirmed.V {
		t.Fatal("c is not ahead")
	}
	w.promote("b")
	w.turns(3)
	w.mustBe(t, "app", "c", Safe, "")
	if w.servers["c"].slots["app"].Confirmed != at || !w.has(CondPrimaryBehindMirror) {
		t.Fatalf("app on c %+v, conditions %v", w.servers["c"].slots["app"], w.conditions)
	}
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if w.servers["c"].slots["app"].Confirmed == at {
		t.Error("it does not follow the new primary")
	}
}

func TestReadsOfTheOldTimelineAreNotApplied(t *testing.T) {
	w := settled(t)
	w.write(0x4000)
	w.confirm("app", 0x33000, 0x34000, w.nextXID) // nobody has received it
	w.turn()
	w.promote("b")
	w.turn()
	w.write(0x8000)
	w.replayAll()
	w.turns(2)
	if at := w.servers["c"].slots["app"].Confirmed.V; at > 0x30000 {
		t.Fatalf("app on c is at %s, which only the old timeline had", at)
	}
}

func TestReadsOfTheOldIncarnationAreNotApplied(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	end := w.primary().node.Insert.V
	w.turn() // kept, not replayed
	w.write(0x1000)
	w.createSlot("app")
	app(w, "a").Plugin = "test_decoding"
	w.turn()
	w.replay("b", end)
	w.turn()
	if m := app(w, "b"); m != nil && m.Plugin == "pgoutput" && m.Confirmed.V == end {
		t.Fatalf("moved to the old one's position: %+v", m)
	}
	if kinds(w.plan)["apply/b"] {
		t.Fatalf("sent: %s", describe(w.plan))
	}
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if m := app(w, "b"); m.Plugin != "test_decoding" {
		t.Errorf("%+v", m)
	}
}

func TestDemotedOriginalsThatCannotBeMovedGo(t *testing.T) {
	for name, replay := range map[string]cluster.LSN{"nothing replayed yet": 0x2f000, "ahead of the new primary's slot": 0x40000} {
		t.Run(name, func(t *testing.T) {
			w := settled(t)
			w.write(0x2000)
			w.replayAll()
			w.confirm("app", 0x30800, 0x31000, w.nextXID)
			w.refuse = steps(StepApply)
			w.turn()
			w.refuse = nil
			w.promote("b")
			w.turns(2)
			a, b := w.servers["a"], w.servers["b"]
			a.up, a.node.InRecovery, a.node.Timeline, a.node.History = true, true, 2, b.node.History
			a.node.Replay, a.node.Receive = cluster.Some(replay), cluster.Some(replay)
			w.turn()
			if app(w, "a") != nil {
				t.Fatalf("still there: %+v\n%s", app(w, "a"), describe(w.plan))
			}
			w.write(0x10000)
			w.replayAll()
			w.turn()
			w.mustBe(t, "app", "a", Safe, "")
		})
	}
}

func TestMirrorPastTheForkWithNothingToReplaceItGoes(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.servers["b"].node.Replay = cluster.Some(cluster.LSN(0x30800)) // b was behind
	setXmin(app(w, "b"), app(w, "b").CatalogXmin.V)
	app(w, "b").Confirmed, app(w, "b").Restart = cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x2ff00))
	w.promote("b")
	c := w.servers["c"] // as if its WAL beyond the fork had been taken back, its mirror not
	c.node.Timeline, c.node.History, c.node.Replay = 2, w.servers["b"].node.History, cluster.Some(cluster.LSN(0x2f000))
	w.turn()
	if app(w, "c") != nil {
		t.Fatalf("%+v\n%s", app(w, "c"), describe(w.plan))
	}
}

func TestAbsenceIsCountedByReadAndTimeline(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, "app")
	w.turn()
	w.now = w.now.Add(-20e6) // the same read, shown twice
	w.turn()
	if kinds(w.plan)["drop/b"] {
		t.Fatal("one read counted twice")
	}
	w.promote("b")
	delete(w.servers["b"].slots, "app")
	w.turn()
	if kinds(w.plan)["drop/c"] {
		t.Fatal("reads of two timelines are not two reads")
	}
	w.turn()
	if !kinds(w.plan)["drop/c"] {
		t.Fatal("not dropped")
	}
}

// A mirror that could not be marked as an original yet is one all the same: a
// later loss of the hold must not take it for unproven.
func TestUnmarkedOriginalOfANewPrimaryIsNotDropped(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.refuse = func(s Step) string {
		if s.Kind == StepMark {
			return "timeout"
		}
		return ""
	}
	w.turns(2)
	delete(w.servers["b"].slots, cluster.HoldName)
	w.turns(3)
	if app(w, "b") == nil {
		t.Fatal("the consumer's slot was dropped")
	}
}

func TestWALIsHeldForWhatIsNotMirroredYet(t *testing.T) {
	w := settled(t)
	w.provable = func(cluster.Change) bool { return false }
	s := w.createSlot("more")
	w.turns(2)
	if h := w.servers["b"].slots[cluster.WALHoldName]; h == nil || h.Restart != s.Restart {
		t.Fatalf("WAL hold %+v, want %v", h, s.Restart)
	}
	w.provable = nil
	w.now = w.now.Add(w.policy.Interval)
	w.turns(2)
	if w.servers["b"].slots[cluster.WALHoldName] != nil {
		t.Error("nothing waits any more")
	}
	// What is dropped as unproven keeps its WAL.
	delete(w.servers["a"].slots, cluster.HoldName)
	w.catchUp("app")
	w.turn()
	if app(w, "b") != nil || w.servers["b"].slots[cluster.WALHoldName] == nil {
		t.Error("the mirror was dropped and its WAL let go")
	}
}

func TestWALThatIsGoneIsNotAskedForAgain(t *testing.T) {
	w := settled(t)
	w.createSlot("more")
	w.answer = map[string]cluster.Outcome{"b": {Code: cluster.CodeWALMissing}}
	w.turns(3)
	for _, s := range w.plan.Steps {
		if s.Node == "b" && s.WAL.OK && s.WAL.V != 0 {
			t.Errorf("asked again: %+v", s)
		}
	}
}

func TestSelection(t *testing.T) {
	slot := func(name, db, plugin string) cluster.Slot {
		return cluster.Slot{Name: name, Database: db, Plugin: plugin, Kind: cluster.Logical}
	}
	p := Policy{Include: []Match{{Name: "*"}}, Exclude: []Match{{Name: "debezium_*", Plugin: "wal2json"}, {Database: "a/b*"}, {}}}
	for _, tc := range []struct {
		slot cluster.Slot
		want bool
	}{
		{slot("app", "shop", "pgoutput"), true},
		{slot("debezium_1", "shop", "wal2json"), false},
		{slot("debezium_1", "shop", "pgoutput"), true},
		{slot("app", "a/b/c", "pgoutput"), false},
		{slot("app", "база", "pgoutput"), true},
		{cluster.Slot{Name: "p", Kind: cluster.Physical}, false},
		{cluster.Slot{Name: "t", Kind: cluster.Logical, Temporary: true}, false},
		{slot(cluster.HoldName, "shop", "pgoutput"), false},
	} {
		if got := p.Selected(tc.slot); got != tc.want {
			t.Errorf("%s in %s with %s: %t", tc.slot.Name, tc.slot.Database, tc.slot.Plugin, got)
		}
	}
	if (Policy{Include: []Match{{}}}).Selected(slot("app", "shop", "pgoutput")) {
		t.Error("an empty match selects")
	}
	if (Policy{Include: []Match{{Name: "["}}}).Selected(slot("[", "shop", "pgoutput")) {
		t.Error("a malformed pattern selects")
	}
}

func TestSnapshotsAreAskedForUntilThereIsOne(t *testing.T) {
	w := settled(t)
	w.servers["a"].files = map[cluster.LSN]bool{}
	w.catchUp("app")
	w.servers["a"].files = map[cluster.LSN]bool{}
	w.turn()
	slots := w.servers["a"].read().Slots
	if want := WantSnapshots(w.policy, w.memory, slots); len(want) != 1 || want[0] != app(w, "a").Restart.V {
		t.Fatalf("wanted %v", want)
	}
	w.servers["a"].files[app(w, "a").Restart.V] = true
	w.turn()
	if want := WantSnapshots(w.policy, w.memory, slots); len(want) != 0 {
		t.Fatalf("still wanted %v", want)
	}
	for _, k := range w.memory.Kept["app"] {
		if k.Position.Restart == app(w, "a").Restart.V && !k.Snapshot.OK {
			t.Error("the kept read did not get it")
		}
	}
}

// A new slot whose restart_lsn is no record that a file belongs to, and that
// nothing but another decoder's file proves.
func TestIdleSlotIsProvenByALaterFile(t *testing.T) {
	w := settled(t)
	s := w.createSlot("more")
	delete(w.servers["a"].files, s.Restart.V)
	w.provable = func(ch cluster.Change) bool { return ch.Snapshot.OK }
	w.turns(2)
	w.mustBe(t, "more", "b", Pending, ReasonNoConsistentPoint)
	if w.walked != 1 {
		t.Errorf("%d walks within an interval", w.walked)
	}

	at := s.Restart.V + 0x30
	w.servers["a"].later[s.Restart.V], w.servers["a"].files[at] = at, true
	w.now = w.now.Add(w.policy.Interval)
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
	m := w.servers["b"].slots["more"]
	if m.Marker.Way != laterFile || m.Marker.Witness != cluster.Some(at) {
		t.Fatalf("marker %+v", m.Marker)
	}
	walked := w.walked
	w.now = w.now.Add(w.policy.Interval)
	w.turn()
	if w.walked != walked {
		t.Error("walked again, though there is a file")
	}

	m.Snapshot = cluster.SnapshotAbsent
	if v := Decide(w.now, w.policy, w.observe(), w.memory).Verdicts; !slices.ContainsFunc(v, func(v Verdict) bool {
		return v.Slot == "more" && v.Reason == ReasonBadSnapshot && strings.Contains(v.Message, at.String())
	}) {
		t.Fatalf("observed %+v", v)
	}
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
	if m.Snapshot != cluster.SnapshotValid || m.Marker.Witness != cluster.Some(at) {
		t.Errorf("mirror %+v, marker %+v", m, m.Marker)
	}
}

func TestWalksAreAskedForAgain(t *testing.T) {
	p := Policy{Include: []Match{{Name: "*"}}, Interval: time.Second}
	pos := cluster.Position{Restart: 0x100, Confirmed: 0x200, CatalogXmin: 700}
	s := cluster.Slot{Name: "app", Kind: cluster.Logical, Restart: cluster.Some(pos.Restart), Confirmed: cluster.Some(pos.Confirmed), CatalogXmin: cluster.Some(pos.CatalogXmin)}
	moved := pos
	moved.Restart--
	for _, c := range []struct {
		name   string
		last   Walk
		files  map[cluster.LSN][]byte
		asked  bool
		resume string
	}{
		{name: "never asked", asked: true},
		{name: "the file is there", files: map[cluster.LSN][]byte{pos.Restart: {1}}},
		{name: "asked just now", last: Walk{Position: pos, At: epochZero}},
		{name: "asked long ago", last: Walk{Position: pos, At: epochZero.Add(-time.Second)}, asked: true},
		{name: "asked for another restart_lsn", last: Walk{Position: moved, At: epochZero, Resume: "r"}, asked: true},
		{name: "proven without a file", last: Walk{Position: pos, At: epochZero.Add(-time.Hour), Way: "phases"}},
		{name: "proven by a file that did not come", last: Walk{Position: pos, At: epochZero.Add(-time.Hour), Way: laterFile}, asked: true},
		{name: "not ended", last: Walk{Position: pos, At: epochZero, Resume: "r"}, asked: true, resume: "r"},
	} {
		m := Memory{Slots: map[string]SlotNote{"app": {Walk: c.last}}}
		want := WantWalks(epochZero, p, m, []cluster.Slot{s}, c.files)
		if (len(want) == 1) != c.asked || c.asked && want[0] != (WalkWanted{Slot: "app", Position: pos, Resume: c.resume}) {
			t.Errorf("%s: %+v", c.name, want)
		}
	}
}

func TestD18FormerOriginalsAreToldOfAndNotMirrored(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.turn()
	a, b := w.servers["a"], w.servers["b"]
	a.up, a.node.InRecovery, a.node.Timeline, a.node.History = true, true, 2, b.node.History
	a.node.Replay, a.node.Receive = b.node.Insert, b.node.Insert
	w.promote("a") // before the controller has seen it as a standby
	w.turns(3)
	if !w.has(CondProtectionGap) || app(w, "a") == nil {
		t.Fatalf("conditions %v, app %+v", w.conditions, app(w, "a"))
	}
	if v := w.verdict("app", "c"); v.State != "" {
		t.Errorf("it is mirrored: %+v", v)
	}
	w.createSlot("app")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if w.has(CondProtectionGap) {
		t.Error("the new slot is blamed for the old one")
	}
}

func TestUnprovenMirrorInUseOnANewPrimaryIsToldOf(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = steps(StepStamp)
	w.turn()
	w.refuse = nil
	w.promote("b")
	app(w, "b").ActivePID = 7
	w.turn()
	if !w.has(CondProtectionGap) || app(w, "b") == nil {
		t.Fatalf("conditions %v", w.conditions)
	}
	app(w, "b").ActivePID = 0
	w.turns(2)
	if app(w, "b") != nil || !w.has(CondSlotMissing) {
		t.Fatalf("app %+v, conditions %v", app(w, "b"), w.conditions)
	}
}
