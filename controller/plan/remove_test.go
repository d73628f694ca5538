package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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

// D21, for a leader that remembers nothing: what the other nodes are marked with
// says that the new primary's mirror was left behind.
func TestD21LeaderThatRemembersNothing(t *testing.T) {
	for name, gap := range map[string]bool{"left behind": true, "held throughout": false} {
		w := settled(t)
		if gap {
			delete(w.servers["a"].slots, cluster.HoldName)
			w.refuse = func(s Step) string {
				if s.Node == "b" {
					return "connection reset"
				}
				return ""
			}
			w.turn()
			w.refuse = nil
		}
		w.promote("b")
		w.memory = Memory{Epoch: 12, Store: store}
		w.turns(3)
		if gone := w.servers["b"].slots["app"] == nil; gone != gap || w.has(CondSlotMissing) != gap {
			t.Errorf("%s: it is gone: %v, conditions %v", name, gone, w.conditions)
		}
	}
}

// Without the file that its proof rests on it is consistent later, and what commits
// before that is missed: a restartpoint may have taken it while nobody could ship it.
func TestMirrorWithoutItsFileDoesNotOutliveThePromotion(t *testing.T) {
	for state, stays := range map[cluster.SnapshotState]bool{cluster.SnapshotAbsent: false, cluster.SnapshotValid: true} {
		w := settled(t)
		w.servers["a"].up = false
		app(w, "b").Snapshot = state
		w.turn()
		w.promote("b")
		app(w, "b").Snapshot = state
		w.turns(2)
		if there := app(w, "b") != nil; there != stays || w.has(CondSlotMissing) == stays || w.primary() != w.servers["b"] {
			t.Errorf("its file is %s: app is on b: %t, conditions %v", state, there, w.conditions)
		}
	}
}

// A checkpoint takes a later file once decoding is past it.
func TestLaterFileThatDecodingHasPassedIsNotMissed(t *testing.T) {
	slot := cluster.Slot{Restart: cluster.Some(cluster.LSN(100)), Snapshot: cluster.SnapshotAbsent}
	for witness, gone := range map[cluster.LSN]bool{99: false, 100: true, 101: true} {
		slot.Marker = &cluster.Marker{Way: laterFile, Witness: cluster.Some(witness)}
		if fileIsGone(slot) != gone {
			t.Errorf("with a file at %s it is gone: %t", witness, !gone)
		}
	}
}

// The slot was made anew, perhaps as a copy of one further back, and its mirror on b
// could not be replaced before the promotion. A ledger that is older than the mirror
// says nothing against it.
func TestMirrorOfAnEarlierSlotDoesNotOutliveThePromotion(t *testing.T) {
	for name, earlier := range map[string]bool{"of the slot before": true, "of a slot after": false} {
		w := settled(t)
		w.refuse = func(s Step) string {
			if s.Node == "b" {
				return "connection reset"
			}
			return ""
		}
		delete(w.primary().slots, "app")
		w.createSlot("app")
		w.turn()
		w.refuse = nil
		if !earlier {
			source := &app(w, "b").Marker.Source
			source.Birth.V = source.Birth.V.Add(time.Hour)
		}
		w.promote("b")
		w.turns(2)
		if gone := w.servers["b"].slots["app"] == nil; gone != earlier || w.has(CondSlotMissing) != earlier || w.primary() != w.servers["b"] {
			t.Errorf("%s: it is gone: %t, conditions %v", name, gone, w.conditions)
		}
	}
}

// A slot that none is mirrored from stands under that name on the new primary.
func TestSlotOfAnotherKindInAMirrorsPlaceIsNoSlotThatCameThrough(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.servers["b"].slots["app"] = physical("app")
	w.turns(4)
	if !w.has(CondSlotMissing) || w.servers["b"].slots["app"] == nil {
		t.Errorf("on b is %+v, conditions %v", w.servers["b"].slots["app"], w.conditions)
	}
	w.createSlot("app")
	w.replayAll()
	w.turns(2)
	if w.has(CondSlotMissing) {
		t.Error("the slot that was made since is told of as missing")
	}
}
