package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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
