package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestConditionsSayWhatTheyShould(t *testing.T) {
	w := settled(t)
	w.servers["b"].node.Feedback = false
	w.servers["b"].node.PrimarySlotName, w.servers["c"].node.PrimarySlotName = "gone", "dead"
	w.servers["a"].slots["dead"] = &cluster.Slot{Name: "dead", Kind: cluster.Physical, Invalidated: "wal_removed"}
	w.turn()
	for _, code := range []string{CondFeedbackOff, CondPhysicalSlotMissing, CondPhysicalSlotInvalidated} {
		if !w.has(code) {
			t.Errorf("no %s in %v", code, w.conditions)
		}
	}
	since := w.conditions[0].Since
	w.turn()
	if w.conditions[0].Since != since {
		t.Error("the condition is dated anew")
	}
	if w.has(CondNoSafeCandidate) {
		t.Error("no_safe_candidate although all is SAFE")
	}
	w.servers["b"].up, w.servers["c"].up = false, false
	w.turn()
	if !w.has(CondNoSafeCandidate) {
		t.Error("no_safe_candidate is missing")
	}
}
