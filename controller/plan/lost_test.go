package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestC14LostSlotTouchesNoOther(t *testing.T) {
	w := settled(t)
	w.createSlot("more")
	w.turn()
	lost := w.servers["a"].slots["app"]
	lost.Invalidated, lost.Restart = "wal_removed", cluster.None[cluster.LSN]()
	w.catchUp("more")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Lost, ReasonWALRemoved)
	w.mustBe(t, "more", "b", Safe, "")
	if w.verdict("more", "b").LagBytes.V != 0 {
		t.Error("more does not follow")
	}
	// Only on the standby: the mirror is dropped and made again.
	w.servers["b"].slots["more"].Invalidated = "wal_removed"
	w.turn()
	w.mustBe(t, "more", "b", Lost, ReasonWALRemoved)
	w.mustBe(t, "more", "c", Safe, "")
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
}

// Of a slot that is lost on the primary it is said what is left on each standby.
func TestWhatIsLeftOfALostSlot(t *testing.T) {
	for want, pr := range map[string]*pair{
		"b has no mirror of it":                {},
		"the server's copy on b follows it":    {server: true},
		"b still has it at 0/100":              {mirror: &cluster.Slot{Confirmed: cluster.Some(cluster.LSN(0x100))}},
		"(wal_removed); b has no mirror of it": {mirror: &cluster.Slot{Invalidated: "wal_removed"}},
	} {
		pr.node, pr.t = "b", &tracked{slot: cluster.Slot{Name: "app", Invalidated: "wal_removed"}}
		if f := lostRule(&cycle{lead: leadership{primary: "a"}}, pr); f == nil || !strings.Contains(f.message, want) {
			t.Errorf("it says %+v, want %q", f, want)
		}
	}
}
