package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// wipe is another etcd, or the same without its data.
func (w *world) wipe() { w.memory = Memory{Epoch: w.memory.Epoch + 1, Store: store} }

// passes has the consumer confirm, b replay, and the holds rise, until the rows from
// x on are gone.
func (w *world) passes(t *testing.T, x cluster.XID) {
	t.Helper()
	for range 4 {
		w.catchUp("app")
		w.replay("b", w.primary().node.Insert.V)
		w.now = w.now.Add(w.policy.RaiseEvery)
		w.turns(2)
	}
	w.vacuum()
	w.replayAll()
	if w.primary().removed.NotAfter(x) {
		t.Fatalf("the scene is not set: the hold is at %s", w.hold("a").CatalogXmin.V)
	}
}

// takesTheHoldBack has a standby's feedback bring an old catalog_xmin with it, which a
// newborn slot inherits, and for that slot's sake the hold.
func (w *world) takesTheHoldBack(x cluster.XID) {
	w.primary().slots["feedback"] = &cluster.Slot{Name: "feedback", Kind: cluster.Physical,
		CatalogXmin: cluster.Some(x), EffectiveCatalogXmin: cluster.Some(x), Saved: true, WALok: true}
	w.createSlot("late")
	w.turns(3)
}

// The ledger is lost while a member's key is missing, so that nobody knows of its
// mirrors when the holds rise. When it is back, a slot has taken the hold back.
func TestAMemberThatWasAwayWhenTheLedgerWasLostProvesNothing(t *testing.T) {
	w := settled(t)
	c, x := w.servers["c"], app(w, "c").CatalogXmin.V
	delete(w.servers, "c")
	w.wipe()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "") // what is there is believed
	w.passes(t, x)
	w.takesTheHoldBack(x)
	if !w.hold("a").CatalogXmin.V.NotAfter(x) {
		t.Fatalf("the scene is not set: the hold is at %s, the mirror needs %s", w.hold("a").CatalogXmin.V, x)
	}
	w.comesBackWithNothingProven(t, "c", c)
}

// All of slotkeeper was removed while a member's key was missing, and set up anew with
// another store. Generations began anew as well: what the member comes back with looks
// like one of today.
func TestAMemberWithMirrorsOfAnEarlierInstallationProvesNothing(t *testing.T) {
	w := settled(t)
	c, x := w.servers["c"], app(w, "c").CatalogXmin.V
	delete(w.servers, "c")
	for _, s := range w.servers {
		s.node.Fence = cluster.None[cluster.Fence]()
		for name, slot := range s.slots {
			if slot.Marker != nil && slot.Marker.Kind != cluster.MarkOriginal {
				delete(s.slots, name)
			}
			slot.Marker = nil
		}
	}
	w.memory = Memory{Epoch: 1, Store: "store-2"}
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	w.passes(t, x)
	w.takesTheHoldBack(x)
	c.node.Fence = cluster.None[cluster.Fence]()
	if g := c.slots["app"].Marker.Generation; g != w.memory.Generation || !w.hold("a").CatalogXmin.V.NotAfter(x) {
		t.Fatalf("the scene is not set: the mirror is of generation %d, today is %d, the hold is at %s", g, w.memory.Generation, w.hold("a").CatalogXmin.V)
	}
	w.comesBackWithNothingProven(t, "c", c)
}

// The hold goes before it was brought into the generation that the new ledger began
// with: it is gone all the same, and what it held is not held any more.
func TestAHoldOfTheLastGenerationThatGoesIsGone(t *testing.T) {
	w := settled(t)
	w.wipe()
	w.refuse = func(s Step) string {
		if s.ID == "lower/a" {
			return "connection reset"
		}
		return ""
	}
	w.turn()
	w.refuse = nil
	if g := w.hold("a").Marker.Generation; g >= w.memory.Generation {
		t.Fatalf("the scene is not set: the hold is of generation %d, the ledger of %d", g, w.memory.Generation)
	}
	x := app(w, "c").CatalogXmin.V
	w.servers["c"].up = false // or its mirror would be dropped at once
	delete(w.servers["a"].slots, cluster.HoldName)
	w.catchUp("app")
	w.vacuum()
	w.replay("b", w.primary().node.Insert.V)
	w.turn()
	if !w.has(CondHoldMissing) {
		t.Errorf("conditions %v", w.conditions)
	}
	setXmin(w.hold("a"), x) // as a slot that was born late would have it
	w.servers["c"].up = true
	w.turn()
	if v := w.verdict("app", "c"); v.State == Safe {
		t.Errorf("app on c is SAFE: %s", v.Message)
	}
}
