package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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

// What mends a mirror and is refused is tried again once per interval, not in each cycle.
func TestRefusedMendingIsNotTriedInEachCycle(t *testing.T) {
	w := settled(t)
	app(w, "b").Snapshot = cluster.SnapshotAbsent
	w.answer = map[string]cluster.Outcome{"b": {Code: cluster.CodeBadSnapshot, Detail: "its checksum is wrong"}}
	tries := 0
	for range 40 { // 800 ms
		w.turn()
		if kinds(w.plan)["apply/b"] || kinds(w.plan)["apply/b/held"] {
			tries++
		}
	}
	if tries != 1 {
		t.Errorf("%d tries within an interval", tries)
	}
}

// What was refused is forgotten once the mirror is well: it says nothing of the next time.
func TestRefusalIsForgottenWhenTheMirrorIsWell(t *testing.T) {
	w := settled(t)
	app(w, "b").Snapshot = cluster.SnapshotAbsent
	w.answer = map[string]cluster.Outcome{"b": {Code: cluster.CodeBadSnapshot, Detail: "its checksum is wrong"}}
	w.turn()
	pair := Pair{Slot: "app", Standby: "b"}
	if w.memory.Pairs[pair].Tried.Code != cluster.CodeBadSnapshot {
		t.Fatalf("the scene is not set: %+v", w.memory.Pairs[pair])
	}
	app(w, "b").Snapshot = cluster.SnapshotValid
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if tried := w.memory.Pairs[pair].Tried; !tried.At.IsZero() {
		t.Errorf("it is remembered still: %+v", tried)
	}
}
