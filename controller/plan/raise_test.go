package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestKeptReadsHoldTheRaiseBack(t *testing.T) {
	w := newWorld("b", "c")
	w.createSlot("app")
	w.servers["c"].node.Replay = cluster.Some(cluster.LSN(0x2f000)) // c has no mirror to speak for it
	for range 20 {
		w.turn()
		w.now = w.now.Add(time.Second)
		w.catchUp("app")
		w.replay("b", w.primary().node.Insert.V)
	}
	w.vacuum()
	w.mustBe(t, "app", "c", Pending, ReasonReplayLag)
	w.replay("c", 0x30000)
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if at := w.servers["c"].slots["app"].Confirmed.V; at != 0x30000 {
		t.Errorf("made at %s", at)
	}
}

func TestRaisesAreRareAndReachAllNodes(t *testing.T) {
	w := settled(t)
	raised := 0
	for range 100 { // two seconds
		w.catchUp("app")
		w.replayAll()
		w.turn()
		if kinds(w.plan)["raise/a"] {
			raised++
			if !kinds(w.plan)["raise/b"] || !kinds(w.plan)["raise/c"] {
				t.Errorf("not everywhere: %s", describe(w.plan))
			}
		}
	}
	if raised != 1 {
		t.Errorf("%d raises in two seconds", raised)
	}
}

func TestUnreadAnswerOfApplyHoldsTheRaiseBack(t *testing.T) {
	w := newWorld("b", "c")
	w.turn()
	w.createSlot("app")
	x := w.servers["a"].slots["app"].CatalogXmin.V
	w.lose = func(s Step) bool { return s.Node == "c" && s.Kind == StepApply }
	w.turn()
	w.servers["c"].up = false
	for range 20 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
		w.now = w.now.Add(time.Second)
	}
	if got := w.hold("a").CatalogXmin.V; !got.NotAfter(x) {
		t.Fatalf("raised to %s, the mirror that c made needs %s", got, x)
	}
}

func TestEachLeadershipReadsAllBeforeItRaises(t *testing.T) {
	w := newWorld("b", "c")
	w.servers["c"].node.WalLevel = "replica" // no mirrors there
	w.createSlot("app")
	w.turns(3)
	w.servers["c"].up = false
	w.memory.Epoch++
	for range 20 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
		w.now = w.now.Add(time.Second)
		if kinds(w.plan)["raise/a"] {
			t.Fatal("raised before c was read")
		}
	}
}

func TestSlotStillBeingMadeHoldsTheRaiseBack(t *testing.T) {
	w := settled(t)
	making := w.createSlot("making") // it waits for an open transaction
	making.Confirmed = cluster.None[cluster.LSN]()
	x := making.CatalogXmin.V
	for range 20 {
		w.catchUp("app")
		w.replayAll()
		w.turn()
		w.now = w.now.Add(time.Second)
	}
	if got := w.hold("a").CatalogXmin.V; !got.NotAfter(x) {
		t.Fatalf("raised to %s, the slot has %s", got, x)
	}
}
