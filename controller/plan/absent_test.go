package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// fresh is a world with a slot that is not mirrored yet.
func fresh() *world {
	w := newWorld("b", "c")
	w.turns(2)
	w.createSlot("app")
	return w
}

// What a mirror that is not there waits for, one cause before another.
func TestWhyAMirrorIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(w *world)
		turns  int
		reason Reason
		says   string
	}{
		"nothing keeps the rows of any read": {func(w *world) {
			a := app(w, "a")
			a.EffectiveCatalogXmin = cluster.Some(a.CatalogXmin.V + 50)
		}, 1, ReasonNew, "no read of it is protected by the hold"},
		"nothing is received or replayed, for there is no walreceiver": {func(w *world) {
			set(w, 0, 0x2fe00)
			w.servers["b"].node.Receive = cluster.None[cluster.LSN]()
		}, 1, ReasonReplayLag, "has replayed"},
		// A walreceiver that has begun anew says where it began, which is replayed already.
		"refused, and received less than is replayed": {func(w *world) {
			set(w, 0x1000, 0x30000)
			answer(cluster.CodeNoConsistentPoint, "transaction 811 is running")(w)
		}, 2, ReasonNoConsistentPoint, "transaction 811 is running"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fresh()
			c.do(w)
			w.turns(c.turns)
			w.mustBe(t, "app", "b", Pending, c.reason)
			if v := w.verdict("app", "b"); !strings.Contains(v.Message, c.says) {
				t.Errorf("it says %q", v.Message)
			}
		})
	}
}

// A primary that reports less than it did is not followed, and that is what is said.
func TestNoMirrorIsMadeWhileThePrimaryIsBehind(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	a := app(w, "a")
	a.Confirmed = cluster.Some(a.Confirmed.V - 0x10)
	delete(w.servers["b"].slots, "app")
	w.turn()
	if v := w.verdict("app", "b"); v.State != Pending || !strings.Contains(v.Message, "the primary a reports") {
		t.Errorf("%+v", v)
	}
}

// What "slotkeeper plan" shows before anything is done.
func TestAPlanSaysThatItMakesTheMirror(t *testing.T) {
	w := fresh()
	w.turn()
	for _, v := range w.plan.Verdicts {
		if v.Reason != ReasonNew || v.Message != "app is being made on "+v.Standby {
			t.Errorf("%+v", v)
		}
	}
	if len(w.plan.Verdicts) != 2 {
		t.Errorf("%d verdicts", len(w.plan.Verdicts))
	}
}

// Nobody can ship it a file then.
func TestMirrorWithoutItsFileAndWithoutAPrimary(t *testing.T) {
	w := settled(t)
	w.servers["a"].up = false
	app(w, "b").Snapshot = cluster.SnapshotAbsent
	w.turn()
	if v := w.verdict("app", "b"); v.Reason != ReasonBadSnapshot || v.Hint != preferSafe {
		t.Errorf("it is %+v", v)
	}
}
