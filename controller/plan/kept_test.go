package plan

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestKeptReadsServeADelayedStandby(t *testing.T) {
	w := newWorld("b", "c")
	w.createSlot("app")
	w.turns(2)
	var ends []cluster.LSN
	for range 700 {
		w.catchUp("app")
		end := w.primary().node.Insert.V
		ends = append(ends, end)
		w.replay("b", end)
		w.receive("c", end)
		if len(ends) > 500 { // ten seconds behind
			w.replay("c", ends[len(ends)-501])
		}
		w.turn()
	}
	w.mustBe(t, "app", "c", Safe, "")
	replay, mirror := w.servers["c"].node.Replay.V, w.servers["c"].slots["app"].Confirmed.V
	if mirror > replay || replay-mirror > 0x1000*150 {
		t.Errorf("the mirror is at %s, replay at %s", mirror, replay)
	}
	if kept := w.memory.Kept["app"]; len(kept) > maxKept {
		t.Errorf("%d reads are kept", len(kept))
	}
	if lag := w.verdict("app", "b").LagBytes; lag.V != 0 {
		t.Errorf("b is %d behind", lag.V)
	}
	for _, k := range w.memory.Kept["app"] {
		if !w.primary().slots[cluster.HoldName].CatalogXmin.V.NotAfter(k.Position.CatalogXmin) {
			t.Fatalf("the hold is past a kept read at %s", k.Position.CatalogXmin)
		}
	}
}

func TestPropertyThinKeepsEndsAndPinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "reads")
		var kept []Kept
		at := epochZero
		for i := range n {
			at = at.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "gap")) * time.Millisecond)
			kept = append(kept, Kept{At: at, Position: cluster.Position{Restart: 1, Confirmed: cluster.LSN(i + 1), CatalogXmin: 700}})
		}
		pinned := map[cluster.Position]bool{kept[rapid.IntRange(0, n-1).Draw(t, "pinned")].Position: true}
		got := thin(at, kept, pinned)
		if len(got) > maxKept || got[0].Position != kept[0].Position || got[len(got)-1].Position != kept[n-1].Position {
			t.Fatalf("%d reads, from %v to %v", len(got), got[0].Position, got[len(got)-1].Position)
		}
		for p := range pinned {
			if !slices.ContainsFunc(got, func(k Kept) bool { return k.Position == p }) {
				t.Fatalf("%v is gone", p)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b Kept) int { return int(a.Position.Confirmed) - int(b.Position.Confirmed) }) {
			t.Fatal("out of order")
		}
	})
}
