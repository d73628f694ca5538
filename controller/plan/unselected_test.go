package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
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

func TestFiveNamesAreShownAndTheOthersCounted(t *testing.T) {
	names := []string{"g", "f", "e", "d", "c", "b", "a"}
	for count, want := range map[int]string{1: "select: g; ", 5: "select: c, d, e, f, g; ", 6: "select: b, c, d, e, f and 1 more; ", 7: "select: a, b, c, d, e and 2 more; "} {
		if got := unselectedOn("b", slices.Clone(names[:count])).Message; !strings.Contains(got, want) {
			t.Errorf("%d names: %q", count, got)
		}
	}
}

// It stays as long as it is protected, no longer: nobody judges it, and a consumer
// would find it after a promotion.
func TestUnselectedMirrorGoesWhenItIsNotHeld(t *testing.T) {
	w := settled(t)
	w.createSlot("other")
	w.turns(3)
	w.policy.Exclude = []Match{{Name: "app"}}
	w.turn()
	delete(w.servers["a"].slots, cluster.HoldName)
	w.turns(2)
	if app(w, "b") == nil || app(w, "c") == nil {
		t.Fatal("the slot itself still pins what its mirrors need")
	}
	w.catchUp("app")
	w.turn()
	if app(w, "b") != nil || app(w, "c") != nil || !w.has(CondProtectionGap) {
		t.Errorf("app on b %+v, on c %+v, conditions %v", app(w, "b"), app(w, "c"), w.conditions)
	}
	w.mustBe(t, "other", "b", Safe, "")
}

func TestUnselectedMirrorThatWasNotHeldDoesNotOutliveThePromotion(t *testing.T) {
	for gap, stays := range map[bool]bool{true: false, false: true} {
		w := settled(t)
		w.createSlot("other")
		w.turns(3)
		w.policy.Exclude = []Match{{Name: "app"}}
		w.turn()
		if gap {
			delete(w.servers["a"].slots, cluster.HoldName)
			w.turns(2)
		}
		w.promote("b")
		w.turns(2)
		if there := app(w, "b") != nil; there != stays || w.primary() != w.servers["b"] {
			t.Errorf("gap %t: app is on b: %t, conditions %v", gap, there, w.conditions)
		}
	}
}

// Its slot is dropped and made again, as a copy of one that is behind: a consumer that
// finds the mirror of the earlier one after a promotion would miss what lies between.
func TestUnselectedMirrorOfAnEarlierSlotGoes(t *testing.T) {
	w := settled(t)
	w.createSlot("other")
	w.turns(3)
	w.policy.Exclude = []Match{{Name: "app"}}
	w.turns(2)
	w.createSlot("app")
	w.turn()
	if app(w, "b") != nil || app(w, "c") != nil || app(w, "a") == nil {
		t.Errorf("app on a %+v, on b %+v, on c %+v, conditions %v", app(w, "a"), app(w, "b"), app(w, "c"), w.conditions)
	}
	w.mustBe(t, "other", "b", Safe, "")
}

// After a promotion the slot is another directory by nature, and the mirrors of other
// standbys stay.
func TestUnselectedMirrorStaysAfterAPromotion(t *testing.T) {
	for _, before := range []bool{true, false} {
		w := settled(t)
		w.createSlot("other")
		w.turns(3)
		exclude := []Match{{Name: "app"}}
		if before {
			w.policy.Exclude = exclude
			w.turns(2)
		}
		w.promote("b")
		w.turns(3)
		w.policy.Exclude = exclude
		w.turns(3)
		if app(w, "b") == nil || app(w, "c") == nil {
			t.Errorf("unselected before %t: app on b %+v, on c %+v, conditions %v", before, app(w, "b"), app(w, "c"), w.conditions)
		}
	}
}
