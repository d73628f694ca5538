package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestC17NoFreeSlot(t *testing.T) {
	w := newWorld("b")
	w.servers["b"].node.MaxSlots = 4
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		w.createSlot(name)
	}
	w.turns(3)
	for slot, reason := range map[string]Reason{"a": "", "b": "", "c": ReasonNoFreeSlot, "d": ReasonNoFreeSlot, "e": ReasonNoFreeSlot} {
		if v := w.verdict(slot, "b"); v.Reason != reason {
			t.Errorf("%s: %s %q", slot, v.Reason, v.Message)
		}
	}
	if m := w.verdict("c", "b").Message; !strings.Contains(m, "7 are needed, 4 are available") {
		t.Error(m)
	}
	w.createSlot("0")
	w.turns(3)
	w.mustBe(t, "0", "b", Unsafe, ReasonNoFreeSlot)
	w.mustBe(t, "b", "b", Safe, "")
	if len(w.plan.Steps) != 0 {
		t.Errorf("thrash: %s", describe(w.plan))
	}
}

func TestC28ForeignSlots(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	tmp := w.createSlot("tmp")
	tmp.Temporary = true
	for _, s := range []cluster.Slot{
		{Name: "app", Kind: cluster.Logical, Plugin: "pgoutput", Restart: cluster.Some(cluster.LSN(1)), Confirmed: cluster.Some(cluster.LSN(2)), CatalogXmin: cluster.Some(cluster.XID(700))},
		{Name: "theirs", Kind: cluster.Logical, ActivePID: 4},
		{Name: "physical", Kind: cluster.Physical},
	} {
		w.servers["b"].slots[s.Name] = &s
	}
	w.turns(4)
	w.mustBe(t, "app", "b", Unsafe, ReasonNotOurs)
	if len(w.verdicts) != 1 {
		t.Errorf("verdicts %v", w.verdicts)
	}
	for _, name := range []string{"app", "theirs", "physical"} {
		if s := w.servers["b"].slots[name]; s == nil || s.Marker != nil {
			t.Errorf("%s was touched", name)
		}
	}
}

func TestRemovalNeedsTwoReads(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, "app")
	w.turn()
	if kinds(w.plan)["drop/b"] {
		t.Fatal("dropped after one read")
	}
	w.servers["a"].up = false
	w.turns(3)
	w.servers["a"].up = true
	w.servers["b"].slots["app"].ActivePID = 9
	w.turn()
	if !kinds(w.plan)["drop/c"] || kinds(w.plan)["drop/b"] {
		t.Fatalf("want a drop on c only: %s", describe(w.plan))
	}
	w.servers["b"].slots["app"].ActivePID = 0
	w.turns(2)
	if len(w.servers["b"].mirrors()) != 0 || len(w.memory.Slots) != 0 {
		t.Errorf("left: %v, notes %v", w.servers["b"].mirrors(), w.memory.Slots)
	}
}

func TestLosingTheLeadershipStartsTheCountAnew(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, "app")
	w.turn()
	w.memory.Epoch++
	w.turn()
	if kinds(w.plan)["drop/b"] {
		t.Fatal("two reads of two epochs are not two reads")
	}
	if w.plan.Steps[0].Stage != StageFence || w.plan.Steps[0].Fence.Epoch != 11 {
		t.Errorf("no fence first: %s", describe(w.plan))
	}
	w.turn()
	if !kinds(w.plan)["drop/b"] {
		t.Fatal("not dropped")
	}
}

func TestD23RebootHoldsAndGivingUpDoesNot(t *testing.T) {
	w := settled(t)
	w.servers["c"].up = false
	x := w.servers["c"].slots["app"].CatalogXmin.V
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	w.vacuum()
	if !w.primary().removed.NotAfter(x) {
		t.Fatalf("rows of c's mirror are gone after twenty minutes")
	}
	for range 60 {
		w.now = w.now.Add(time.Minute)
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	if !w.has(CondHoldAge) || w.memory.Generation != 2 {
		t.Fatalf("generation %d, conditions %v", w.memory.Generation, w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
	w.vacuum()
	if w.primary().removed.NotAfter(x) {
		t.Fatal("the hold was not raised")
	}
	// D21: a slot born late takes nothing as a proof for the mirror that was left behind.
	hold := w.primary().slots[cluster.HoldName]
	hold.CatalogXmin, hold.EffectiveCatalogXmin = cluster.Some(x), cluster.Some(x)
	w.servers["c"].up = true
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
	w.replayAll()
	w.turns(2)
	w.mustBe(t, "app", "c", Safe, "")
}

func TestForgottenMemberIsGivenUpAtOnce(t *testing.T) {
	w := settled(t)
	delete(w.servers, "c")
	w.memory.Forgotten = map[string]bool{"c": true}
	w.turn()
	if !w.memory.Standbys["c"].GivenUp || w.memory.Generation != 2 {
		t.Fatalf("%+v", w.memory.Standbys["c"])
	}
}

func TestNewLeaderRaisesNothingBeforeItHasReadAll(t *testing.T) {
	w := settled(t)
	x := w.servers["c"].slots["app"].CatalogXmin.V
	w.servers["c"].up = false
	w.memory = Memory{Epoch: 11, Store: store, Standbys: map[string]NodeNote{"c": {}}} // a ledger that is nearly empty
	for range 5 {
		w.now = w.now.Add(10 * time.Second)
		w.catchUp("app")
		w.replayAll()
		w.turn()
	}
	if got := w.primary().slots[cluster.HoldName].CatalogXmin.V; !got.NotAfter(x) {
		t.Fatalf("raised to %s, c needs %s", got, x)
	}
	w.mustBe(t, "app", "b", Safe, "")
}
