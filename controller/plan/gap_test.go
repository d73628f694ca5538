package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestHoldRaisedPastAMirror(t *testing.T) {
	w := settled(t)
	w.catchUp("app") // app itself no longer pins what its mirrors need
	setXmin(w.hold("a"), w.nextXID)
	w.vacuum()
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	if w.memory.Generation != 2 || w.servers["b"].slots["app"] != nil {
		t.Fatalf("generation %d, app on b %+v", w.memory.Generation, w.servers["b"].slots["app"])
	}
}

// The hold was gone while b could not be reached; later a slot is born so far
// back that the new hold looks low enough for what is left on b.
func TestD21ALowHoldProvesNothingForTheTimeBefore(t *testing.T) {
	w := settled(t)
	w.servers["b"].up = false
	w.catchUp("app")
	delete(w.servers["a"].slots, cluster.HoldName)
	w.vacuum()
	w.turn()
	born := w.createSlot("born")
	setXmin(born, 727)
	w.turns(2)
	if x := w.hold("a").CatalogXmin.V; x != 727 {
		t.Fatalf("the hold is at %s", x)
	}
	w.servers["b"].up = true
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
}

func TestD21HoldOfTheNewPrimaryWasSetInRecovery(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = func(s Step) string {
		if s.ID == "lower/b" { // b's hold stays in the old generation, its mirrors do not
			return "connection reset"
		}
		return ""
	}
	w.turn()
	w.refuse = nil
	w.promote("b")
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
	w.turns(3)
	w.mustBe(t, "app", "c", Safe, "")
}

func TestGapBetweenReadAndCallIsNoContinuity(t *testing.T) {
	w := settled(t)
	old := w.createSlot("old")
	setXmin(old, 750)
	w.behind = func(s Step) {
		if s.Stage == StageLowerPrimary {
			delete(w.servers["a"].slots, cluster.HoldName)
			w.catchUp("app")
		}
	}
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	for _, k := range w.memory.Kept["app"] {
		if k.HoldPinned {
			t.Errorf("a kept read counts as held: %+v", k)
		}
	}
	w.behind = nil
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	w.replayAll()
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
}

func TestGapWhereTheHoldVanishedBeforeItWasWritten(t *testing.T) {
	w := settled(t)
	w.servers["b"].slots["app"].Marker.Generation, w.memory.Generation = 1, 1
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = steps(StepHold)
	w.turns(5)
	if w.memory.Generation != 2 {
		t.Errorf("generation %d: one loss begins one generation, however often it cannot be mended", w.memory.Generation)
	}
}

func TestHoldVanishesBetweenReadAndCall(t *testing.T) {
	w := settled(t)
	w.createSlot("more") // needs nothing lowered: it inherits
	w.behind = func(s Step) {
		if s.Stage == StageLowerPrimary {
			delete(w.servers["a"].slots, cluster.HoldName)
		}
	}
	w.servers["a"].slots[cluster.HoldName].CatalogXmin = cluster.Some(cluster.XID(801))
	w.servers["a"].slots[cluster.HoldName].EffectiveCatalogXmin = cluster.Some(cluster.XID(801))
	generation := w.memory.Generation
	w.turn()
	if w.memory.Generation < generation+2 {
		t.Fatalf("generation %d: one for the raise that nobody made, one for the hold that was gone", w.memory.Generation)
	}
	for _, v := range w.verdicts {
		if v.State == Safe && v.Slot == "app" {
			t.Errorf("%+v", v)
		}
	}
	w.behind = nil
	w.turns(3)
	w.mustBe(t, "app", "b", Safe, "")
}
