package plan

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyWhatIsAwayCanBeForgotten(t *testing.T) {
	w := settled(t)
	for node, says := range map[string]string{"a": "was the primary", "b": "b answers", "z": `member "z"; known are a, b, c`} {
		err := w.memory.Forgettable(node)
		var refused *NotForgettable
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", node, err, says)
		}
	}
	w.servers["c"].up = false
	w.turn()
	if err := w.memory.Forgettable("c"); err != nil {
		t.Errorf("c is away: %v", err)
	}
	w.newLeader()
	if err := w.memory.Forgettable("c"); err != nil {
		t.Errorf("c is away, says the ledger: %v", err)
	}
}

// The generation goes up and reaches the nodes that answer before anything is
// raised; what returns is made anew, and nothing is said of it any more meanwhile.
func TestForgottenMemberIsGivenUpInOrder(t *testing.T) {
	w := settled(t)
	x := app(w, "c").CatalogXmin.V
	w.servers["c"].up = false
	w.turn()
	w.memory.Forget("c")
	w.now = w.now.Add(w.policy.RaiseEvery)
	w.turn()
	if w.memory.Generation != 2 || !w.memory.Standbys["c"].GivenUp || app(w, "b").Marker.Generation != 2 {
		t.Fatalf("generation %d, c %+v, app on b %+v", w.memory.Generation, w.memory.Standbys["c"], app(w, "b").Marker)
	}
	if kinds(w.plan)["raise/a"] {
		t.Errorf("raised in the plan that gives it up: %s", describe(w.plan))
	}
	for range 3 {
		w.catchUp("app")
		w.replayAll()
		w.now = w.now.Add(w.policy.RaiseEvery)
		w.turns(2)
	}
	w.vacuum()
	if w.primary().removed.NotAfter(x) || w.has(CondHoldAge) {
		t.Errorf("rows from %s on are kept, c needs %s; conditions %v", w.primary().removed, x, w.conditions)
	}
	w.newLeader()
	w.turns(2)
	if w.memory.Generation != 2 {
		t.Errorf("a new leader gives it up again: generation %d", w.memory.Generation)
	}
	w.servers["c"].up = true
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
	w.replayAll()
	w.turns(2)
	w.mustBe(t, "app", "c", Safe, "")
	if w.memory.Forgotten["c"] {
		t.Error("it is read, and forgotten still")
	}
}

// Its physical slot is nobody's then.
func TestSlotOfAForgottenMemberIsAnOrphan(t *testing.T) {
	w := settled(t)
	w.servers["c"].node.PrimarySlotName = "slot_c"
	w.servers["a"].slots["slot_c"] = physical("slot_c")
	w.turn()
	w.servers["c"].up = false
	w.turn()
	w.now = w.now.Add(orphanAfter)
	w.turn()
	if w.has(CondOrphanPhysicalSlot) {
		t.Fatal("c has only been away for five minutes")
	}
	w.memory.Forget("c")
	w.turn()
	w.now = w.now.Add(orphanAfter)
	w.turn()
	if !w.has(CondOrphanPhysicalSlot) {
		t.Errorf("conditions %v", w.conditions)
	}
}
