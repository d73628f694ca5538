package plan

import "testing"

// Whoever makes a slot has it while it is made: that is no consumer of whom one
// could say after a promotion that it does not come.
func TestMakingASlotIsNoUse(t *testing.T) {
	for _, used := range []bool{false, true} {
		w := settled(t)
		w.createSlot("billing")
		w.primary().slots["billing"].ActivePID = 4711
		w.turn()
		if used {
			w.turn()
		}
		w.primary().slots["billing"].ActivePID = 0
		w.turns(3)
		w.replayAll()
		w.turns(3)
		w.mustBe(t, "billing", "b", Safe, "")
		w.promote("b")
		w.turn()
		w.now = w.now.Add(inactiveAfter)
		w.turn()
		if told := w.has(CondSlotInactive); told != used {
			t.Errorf("used %v: told %v, %v", used, told, w.conditions)
		}
	}
}
