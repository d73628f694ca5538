package plan

import (
	"testing"
	"time"
)

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
