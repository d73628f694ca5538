package plan

import "testing"

// D21 under another name: what was given up comes back as a member that nobody
// has heard of, when a slot that was born late has taken the hold back.
func TestMirrorsOfAMemberWithAnotherNameProveNothing(t *testing.T) {
	for _, remembers := range []bool{true, false} {
		w := settled(t)
		x := app(w, "c").CatalogXmin.V
		c := w.servers["c"]
		c.up = false
		w.turn()
		w.memory.Forget("c")
		for range 4 {
			w.catchUp("app")
			w.replay("b", w.primary().node.Insert.V)
			w.now = w.now.Add(w.policy.RaiseEvery)
			w.turns(2)
		}
		w.vacuum()
		if w.primary().removed.NotAfter(x) {
			t.Fatal("the hold was not raised")
		}
		setXmin(w.hold("a"), x)
		delete(w.servers, "c")
		if !remembers {
			w.newLeader()
		}
		w.comesBackWithNothingProven(t, "d", c)
	}
}

// It is also what nobody can vouch for when it is promoted before it was ever read.
func TestPromotedMemberWithAnotherNameHasNoProvenMirrors(t *testing.T) {
	w := settled(t)
	w.servers["c"].up = false
	w.turn()
	w.memory.Forget("c")
	w.turns(2)
	w.servers["d"] = w.servers["c"]
	delete(w.servers, "c")
	w.servers["d"].up = true
	w.promote("d")
	w.turns(2)
	if w.primary() != w.servers["d"] || w.primary().slots["app"] != nil || !w.has(CondSlotMissing) {
		t.Errorf("app on d is %+v, conditions %v", w.primary().slots["app"], w.conditions)
	}
}

// A new name alone takes nothing away: what is of the generation of today was
// held to this day.
func TestMirrorsOfARenamedMemberStay(t *testing.T) {
	w := settled(t)
	made := app(w, "c").Incarnation
	w.servers["d"] = w.servers["c"]
	delete(w.servers, "c")
	w.turn()
	w.mustBe(t, "app", "d", Safe, "")
	if app(w, "d").Incarnation != made {
		t.Error("it was made anew")
	}
}
