package plan

import (
	"strings"
	"testing"
)

// A fence of another etcd does not go away by itself: the hint says how it does.
func TestAForeignFenceHasAWayOut(t *testing.T) {
	w := settled(t)
	for _, s := range w.servers {
		s.node.Fence.V.Store = "gone"
	}
	w.turn()
	hints := []string{w.conditions[0].Hint}
	for _, v := range w.verdicts {
		hints = append(hints, v.Hint)
	}
	for _, hint := range hints {
		if !strings.Contains(hint, "--take-over") {
			t.Errorf("the hint is %q", hint)
		}
	}
	if !w.has(CondForeignEpoch) || len(w.verdicts) != 2 {
		t.Errorf("the scene is not set: %v %v", w.conditions, w.verdicts)
	}
}
