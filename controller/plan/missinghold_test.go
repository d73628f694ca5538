package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestD17HoldDroppedWhileTheSlotStillPins(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if !w.has(CondHoldMissing) || w.memory.Generation != 2 {
		t.Fatalf("generation %d, conditions %v", w.memory.Generation, w.conditions)
	}
	for _, c := range w.conditions {
		if c.Code == CondHoldMissing && (c.Severity != Warning || !strings.Contains(c.Message, "has been made again")) {
			t.Errorf("beside SAFE stands %s: %s", c.Severity, c.Message)
		}
	}
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if got := w.servers["b"].slots["app"].Marker.Generation; got != 2 {
		t.Errorf("app on b is of generation %d", got)
	}
}

func TestD17HoldDroppedAndRowsGone(t *testing.T) {
	w := settled(t)
	w.write(0x1000)
	end := w.primary().node.Insert.V
	delete(w.servers["a"].slots, cluster.HoldName)
	w.confirm("app", end-0x100, end, w.nextXID)
	w.vacuum()
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonProtectionGap)
	if w.servers["b"].slots["app"] != nil {
		t.Error("the mirror is still there")
	}
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
}

// A mirror that has moved under the hold that was made again has its generation by
// that: it needs no stamp beside it.
func TestD17MovedUnderTheNewHold(t *testing.T) {
	w := settled(t)
	p := app(w, "a")
	w.write(0x1000)
	w.confirm("app", p.Restart.V, w.primary().node.Insert.V, p.CatalogXmin.V)
	w.replayAll()
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = steps(StepStamp)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if m := app(w, "b"); m.Confirmed != p.Confirmed || m.Marker.Generation != 2 {
		t.Errorf("the mirror is %+v, its marker %+v", m, m.Marker)
	}
}
