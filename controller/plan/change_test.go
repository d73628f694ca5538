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
