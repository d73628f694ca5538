package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestHoldOfAStandbyCoversTheMirrorsOfTheOthers(t *testing.T) {
	w := settled(t)
	x := w.servers["c"].slots["app"].CatalogXmin.V
	for range 3 {
		w.catchUp("app")
		w.replay("b", w.primary().node.Insert.V)
		w.turn()
	}
	delete(w.servers["b"].slots, cluster.HoldName)
	w.turn()
	if h := w.hold("b"); h == nil || !h.CatalogXmin.V.NotAfter(x) {
		t.Fatalf("b's hold is %+v, c's mirror needs %s", h, x)
	}
	w.turn() // no session of b is older than this hold
	w.promote("b")
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
}

func TestStandbysAreLoweredAfterThePrimary(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.turn()
	at := map[string]int{}
	for i, s := range w.plan.Steps {
		at[s.ID] = i + 1
		if s.ID == "lower/b" && s.Needs[len(s.Needs)-1] != "lower/a" {
			t.Errorf("lower/b needs %v", s.Needs)
		}
	}
	if at["lower/a"] == 0 || at["lower/a"] > at["lower/b"] || at["lower/b"] > at["apply/b/held"] {
		t.Errorf("order %s", describe(w.plan))
	}
}

func TestD01IdleSlotBesideABusyOne(t *testing.T) {
	w := settled(t)
	for range 5 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.createSlot("idle")
	w.replayAll()
	w.turn()
	w.mustBe(t, "idle", "b", Safe, "")
	for range 400 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.vacuum()
	w.mustBe(t, "idle", "b", Safe, "")
	if x := w.servers["b"].slots["idle"].CatalogXmin.V; !w.primary().removed.NotAfter(x) {
		t.Fatalf("rows up to %s are gone, idle needs %s", w.primary().removed, x)
	}
}
