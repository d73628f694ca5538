package plan

import (
	"strings"
	"testing"
)

// What an unselected slot's mirror keeps must be said by somebody.
func TestMirrorsOfUnselectedSlotsAreTold(t *testing.T) {
	w := settled(t)
	w.createSlot("other")
	w.turns(3)
	w.policy.Exclude = []Match{{Name: "app"}}
	w.turns(3)
	told := 0
	for _, cond := range w.conditions {
		if cond.Code == CondMirrorUnselected {
			told++
			if !strings.Contains(cond.Message, "select: app; ") {
				t.Errorf("it says %q", cond.Message)
			}
		}
	}
	if told != 2 || w.servers["b"].slots["app"] == nil {
		t.Errorf("%d conditions, want one for each standby, and the mirror left where it is: %v", told, w.conditions)
	}
	delete(w.servers["b"].slots, "app")
	delete(w.servers["c"].slots, "app")
	w.turn()
	if w.has(CondMirrorUnselected) {
		t.Error("it is told still")
	}
}
