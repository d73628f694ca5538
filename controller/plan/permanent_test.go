package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestPatronisOwnSlotIsJudgedAndNeverTouched(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.createSlot("theirs")
	m := covering()
	m.Slots.Permanent = map[string]cluster.PermanentSlot{"theirs": {Kind: cluster.Logical, Database: "shop", Plugin: "pgoutput"}}
	for range 4 {
		w.managed(m, "a")
		for _, s := range w.plan.Steps {
			if text := describe(w.plan); strings.Contains(text, "theirs") {
				t.Fatalf("%s: %s", s.ID, text)
			}
		}
	}
	w.mustBe(t, "theirs", "b", Unsafe, ReasonNotOurs)
	w.mustBe(t, "app", "b", Safe, "")
	if w.servers["a"].slots["theirs"].Marker != nil || w.servers["b"].slots["theirs"] != nil {
		t.Error("it was touched")
	}
}

// A slot that goes into Patroni's slots when it is mirrored already: its mirror is
// left as it is, also where it would have to be stamped or dropped.
func TestMirrorOfASlotThatBecomesPatronis(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.createSlot("theirs")
	for range 3 {
		w.managed(covering(), "a")
	}
	w.mustBe(t, "theirs", "b", Safe, "")
	m := covering()
	m.Slots.Permanent = map[string]cluster.PermanentSlot{"theirs": {Kind: cluster.Logical, Database: "shop", Plugin: "pgoutput"}}
	for _, lose := range []func(){
		func() {},
		func() { delete(w.servers["a"].slots, cluster.HoldName) }, // the slot still pins: the mirror is held again and stamped
		func() { w.catchUp("theirs"); w.replayAll(); w.vacuum() },
	} {
		lose()
		for range 3 {
			w.managed(m, "a")
			if text := describe(w.plan); strings.Contains(text, "theirs") {
				t.Fatal(text)
			}
			w.mustBe(t, "theirs", "b", Unsafe, ReasonNotOurs)
		}
	}
	if s := w.servers["b"].slots["theirs"]; s == nil || s.Marker.Generation != 1 {
		t.Errorf("the mirror is %+v", s)
	}
}
