package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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
