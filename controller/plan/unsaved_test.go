package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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
	w.mustBe(t, "more", "b", Unsafe, ReasonHoldNotSaved)
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
