package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// moves has somebody consume from the mirror of app on b.
func moves(w *world) { app(w, "b").Confirmed = cluster.Some(cluster.LSN(0x31000)) }

// From 16 on a mirror can be moved on its standby, and what its consumer has not
// confirmed is missed from there on: it goes at once, and is made anew.
func TestMirrorThatSomebodyHasMovedIsMadeAnew(t *testing.T) {
	w := settled(t)
	made := app(w, "b").Incarnation
	moves(w)
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonMirrorAhead)
	if w.servers["b"].slots["app"] != nil || w.has(CondPrimaryBehindMirror) {
		t.Fatalf("app on b is %+v, conditions %v", w.servers["b"].slots["app"], w.conditions)
	}
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	if app(w, "b").Incarnation == made || app(w, "b").Confirmed != app(w, "a").Confirmed {
		t.Errorf("it is %+v", app(w, "b"))
	}
}

// One that was moved while nobody led is not taken for where the slot has been: the
// primary has run all the time, and what it reports never goes back. A crash is what
// takes it back, and then mirrors are believed that the ledger does not explain.
func TestMirrorThatWasMovedWhileNobodyLed(t *testing.T) {
	for name, crashed := range map[string]bool{"the primary has run since": false, "it has crashed": true} {
		w := settled(t)
		w.write(0x2000)
		w.replayAll()
		w.turns(2)
		moves(w)
		if crashed {
			w.primary().node.Started = w.now
		}
		w.newLeader()
		w.turn()
		if crashed {
			w.mustBe(t, "app", "b", Safe, "")
			continue
		}
		w.mustBe(t, "app", "b", Unsafe, ReasonMirrorAhead)
		if w.servers["b"].slots["app"] != nil {
			t.Errorf("%s: app on b is %+v", name, w.servers["b"].slots["app"])
		}
		w.turns(2)
		w.mustBe(t, "app", "b", Safe, "")
	}
}

// The next leader knows of it at once, not only when positions are due in the ledger.
func TestMirrorsOfBeforeACrashAreTheNextLeadersToo(t *testing.T) {
	w := settled(t)
	old := *app(w, "a")
	w.catchUp("app")
	w.replayAll()
	w.turn()
	made := app(w, "b").Incarnation
	app(w, "a").Confirmed, app(w, "a").Restart = old.Confirmed, old.Restart // a crash
	w.primary().node.Started = w.now
	w.turn()
	w.newLeader()
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	if app(w, "b").Incarnation != made || !w.has(CondPrimaryBehindMirror) {
		t.Errorf("the mirror was made anew: conditions %v", w.conditions)
	}
}

// A standby that comes later in a reign in which the primary has crashed may have
// what the slot had before that, and the ledger does not.
func TestMirrorOfAStandbyThatComesAfterACrashIsBelieved(t *testing.T) {
	w := settled(t)
	w.write(0x2000)
	w.replayAll()
	w.turns(2)
	moves(w)
	w.servers["b"].up = false
	w.newLeader()
	w.turn()
	w.primary().node.Started = w.now
	w.turn()
	w.servers["b"].up = true
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
}

// It must not be there for its consumer either where it could not be dropped
// before the promotion, or where it was moved when there was no primary any more.
func TestMovedMirrorDoesNotOutliveThePromotion(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"not dropped": func(w *world) {
			w.refuse = steps(StepDrop)
			moves(w)
			w.turns(2)
			w.refuse = nil
		},
		"without a primary": func(w *world) {
			w.servers["a"].up = false
			w.turn()
			moves(w)
			w.turn()
			if v := w.verdict("app", "b"); v.State != Unsafe || v.Reason != ReasonMirrorAhead {
				t.Errorf("without a primary: %+v", v)
			}
		},
	} {
		w := settled(t)
		before(w)
		w.promote("b")
		w.turn()
		if said := w.condition(CondSlotMissing); said == nil || !strings.Contains(said.Message, "it was last seen at 0/30000") {
			t.Errorf("%s: of the cycle that drops it: %+v", name, said)
		}
		w.turn()
		if w.primary() != w.servers["b"] || w.primary().slots["app"] != nil || !w.has(CondSlotMissing) {
			t.Errorf("%s: app on b is %+v, conditions %v", name, w.primary().slots["app"], w.conditions)
		}
	}
}

// While somebody consumes from it, it is where that consumer is, and stays. A new
// leader does not learn from it how far the slot has been.
func TestMirrorInUseIsNotTakenForWhereTheSlotWas(t *testing.T) {
	w := settled(t)
	app(w, "b").ActivePID = 4711
	moves(w)
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonInUse)
	w.newLeader()
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonInUse)
	app(w, "b").ActivePID = 0
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonMirrorAhead)
	if hint := w.verdict("app", "b").Hint; !strings.Contains(hint, "made again by itself") {
		t.Errorf("hint %q", hint)
	}
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
}

// The consumer that has moved it keeps it where the node is promoted under it.
func TestMirrorInUseStaysWithItsConsumer(t *testing.T) {
	w := settled(t)
	w.write(0x2000)
	w.replayAll()
	w.turns(2)
	app(w, "b").ActivePID = 4711
	moves(w)
	w.turn()
	w.promote("b")
	w.turns(2)
	if w.primary() != w.servers["b"] || w.primary().slots["app"] == nil {
		t.Error("it was taken from its consumer")
	}
	// Where that is another one, the slot's own misses what lies between, and must be told.
	w.primary().slots["app"].ActivePID = 0
	w.turns(2)
	told := w.condition(CondConsumerAhead)
	if told == nil || told.Severity != Critical || !strings.Contains(told.Message, "used there before the promotion") {
		t.Errorf("of the other it is said: %+v", told)
	}
}

// Somebody has used it while there was a primary, whose slot has a consumer of its own,
// and is gone by the time of the promotion: that consumer must not go on from there.
func TestMirrorThatWasUsedDoesNotOutliveThePromotion(t *testing.T) {
	for name, beyond := range map[string]bool{"beyond the slot": true, "where it was": false} {
		w := settled(t)
		app(w, "b").ActivePID = 4711
		if beyond {
			moves(w)
		}
		w.turn()
		w.mustBe(t, "app", "b", Unsafe, ReasonInUse)
		w.servers["a"].up = false
		w.turn()
		w.promote("b")
		app(w, "b").ActivePID = 0
		w.turns(2)
		if gone := w.primary().slots["app"] == nil; w.primary() != w.servers["b"] || gone != beyond || w.has(CondSlotMissing) != beyond {
			t.Errorf("%s: it is gone: %t, conditions %v", name, gone, w.conditions)
		}
	}
}
