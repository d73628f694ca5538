package plan

import (
	"reflect"
	"testing"
)

func TestNewSlotIsSafeInTheFirstCycleThatReadsIt(t *testing.T) {
	w := newWorld("b", "c")
	w.turn()
	w.createSlot("app")
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "app", "c", Safe, "")
	if w.has(CondHoldMissing) {
		t.Error("the first hold ever counts as one that was gone")
	}
	w.turn()
	if w.has(CondHoldMissing) {
		t.Error("hold_missing in the cycle after the first hold")
	}
	if len(w.plan.Steps) > 2 { // the WAL holds are cleared
		t.Fatalf("not quiet: %s", describe(w.plan))
	}
	w.turn()
	if len(w.plan.Steps) != 0 || w.plan.Again {
		t.Fatalf("again %t, not quiet: %s", w.plan.Again, describe(w.plan))
	}
}

func TestDefaultsOfAPolicy(t *testing.T) {
	if got, want := (Policy{}).withDefaults(), (Policy{Interval: DefaultInterval, MaxHoldAge: DefaultMaxHoldAge, RaiseEvery: DefaultRaiseEvery,
		StaleAfter: DefaultStaleAfter, LeaseTTL: DefaultLeaseTTL, MaxWalk: DefaultMaxWalk}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	own := Policy{Interval: 1, MaxHoldAge: 2, RaiseEvery: 3, StaleAfter: 4, LeaseTTL: 5, MaxWalk: 6}
	if got := own.withDefaults(); !reflect.DeepEqual(got, own) {
		t.Errorf("%+v", got)
	}
}
