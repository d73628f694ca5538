package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestIdleMirrorsAreTouched(t *testing.T) {
	w := settled(t)
	w.servers["b"].node.IdleSlotTimeout = time.Minute
	w.now = w.now.Add(20 * time.Second)
	w.turn()
	if !w.has(CondIdleSlotTimeout) || !kinds(w.plan)["touch/b"] || kinds(w.plan)["touch/c"] {
		t.Fatalf("condition %t: %s", w.has(CondIdleSlotTimeout), describe(w.plan))
	}
	w.mustBe(t, "app", "b", Safe, "")
	w.now = w.now.Add(15 * time.Second)
	w.turn()
	if kinds(w.plan)["touch/b"] {
		t.Error("touched too often")
	}
	w.now = w.now.Add(5 * time.Second)
	w.turn()
	if !kinds(w.plan)["touch/b"] {
		t.Error("not touched at a third of the timeout")
	}
	// The touch must not make a mirror SAFE that is not, nor give it a generation.
	w.now = w.now.Add(20 * time.Second)
	w.servers["b"].slots["app"].Confirmed = cluster.Some(cluster.LSN(0x31000))
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonMirrorAhead)
}

func TestIdleWALHoldIsTouched(t *testing.T) {
	w := newWorld("b")
	w.servers["b"].node.IdleSlotTimeout = time.Minute
	w.provable = func(cluster.Change) bool { return false }
	w.createSlot("app")
	w.turns(3)
	if w.servers["b"].slots[cluster.WALHoldName] == nil {
		t.Fatal("the scene is not set: no WAL hold")
	}
	w.now = w.now.Add(10 * time.Second)
	w.turn()
	if kinds(w.plan)["lower/b"] {
		t.Error("touched too often")
	}
	w.now = w.now.Add(10 * time.Second)
	w.turn()
	if !kinds(w.plan)["lower/b"] {
		t.Error("not touched at a third of the timeout")
	}
}

// Only a WAL hold that was held counts as taken in hand.
func TestWhatTouchesTheWALHold(t *testing.T) {
	for _, tc := range []struct {
		row  cluster.Outcome
		want bool
	}{
		{cluster.Outcome{Name: cluster.WALHoldName, Code: cluster.CodeHeld}, true},
		{cluster.Outcome{Name: cluster.WALHoldName, Code: cluster.CodeWALMissing}, false},
		{cluster.Outcome{Name: cluster.HoldName, Code: cluster.CodeHeld}, false},
	} {
		s := &settling{now: epochZero, m: Memory{Standbys: map[string]NodeNote{"b": {}}}}
		s.settleWALTouch(Step{Node: "b"}, StepOutcome{Outcomes: []cluster.Outcome{tc.row}})
		if touched := !s.m.Standbys["b"].WALTouched.IsZero(); touched != tc.want {
			t.Errorf("%s %s: touched %t", tc.row.Name, tc.row.Code, touched)
		}
	}
}
