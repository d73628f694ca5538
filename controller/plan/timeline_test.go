package plan

import "testing"

// c was ahead of b when b was promoted: what its mirror holds is true on the
// new timeline too, and the new primary's slot comes to it.
func TestMirrorAheadOfThePromotedOneStays(t *testing.T) {
	w := settled(t)
	w.refuse = steps(StepApply)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.refuse = nil
	at := w.servers["c"].slots["app"].Confirmed
	if at.V <= w.servers["b"].slots["app"].Confirmed.V {
		t.Fatal("c is not ahead")
	}
	w.promote("b")
	w.turns(3)
	w.mustBe(t, "app", "c", Safe, "")
	if w.servers["c"].slots["app"].Confirmed != at || !w.has(CondPrimaryBehindMirror) {
		t.Fatalf("app on c %+v, conditions %v", w.servers["c"].slots["app"], w.conditions)
	}
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if w.servers["c"].slots["app"].Confirmed == at {
		t.Error("it does not follow the new primary")
	}
}

func TestReadsOfTheOldTimelineAreNotApplied(t *testing.T) {
	w := settled(t)
	w.write(0x4000)
	w.confirm("app", 0x33000, 0x34000, w.nextXID) // nobody has received it
	w.turn()
	w.promote("b")
	w.turn()
	w.write(0x8000)
	w.replayAll()
	w.turns(2)
	if at := w.servers["c"].slots["app"].Confirmed.V; at > 0x30000 {
		t.Fatalf("app on c is at %s, which only the old timeline had", at)
	}
}
