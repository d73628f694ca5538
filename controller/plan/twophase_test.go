package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// C12: two-phase is turned on for a slot, then turned off and on again between
// two reads. It is the same slot, and its mirror gets both fields with a position
// that was read with them.
func TestC12TwoPhaseTurnedOn(t *testing.T) {
	w := settled(t)
	p := w.primary().slots["app"]
	p.TwoPhase, p.TwoPhaseAt = true, p.Confirmed
	w.turns(2)
	for _, node := range []string{"b", "c"} {
		w.mustBe(t, "app", node, Safe, "")
		if m := w.servers[node].slots["app"]; !m.TwoPhase || m.TwoPhaseAt != p.TwoPhaseAt {
			t.Errorf("the mirror on %s has two-phase %t at %v, the slot at %v", node, m.TwoPhase, m.TwoPhaseAt, p.TwoPhaseAt)
		}
	}
	if w.has(CondSlotRecreated) {
		t.Error("the slot counts as another one")
	}

	p.TwoPhaseAt = cluster.Some(p.Confirmed.V - 0x10)
	w.turns(2)
	if m := w.servers["b"].slots["app"]; m.TwoPhaseAt != p.TwoPhaseAt {
		t.Errorf("the mirror is left with two-phase at %v, the slot has it at %v", m.TwoPhaseAt, p.TwoPhaseAt)
	}
}

// C12: a standby that lags is never given a read of before with two-phase.
func TestC12TwoPhaseOnALaggingStandby(t *testing.T) {
	w := settled(t)
	p := w.primary().slots["app"]
	w.catchUp("app") // b does not replay it
	w.turn()
	p.TwoPhase, p.TwoPhaseAt = true, p.Confirmed
	w.turns(2)
	w.mustBe(t, "app", "b", Pending, ReasonReceiveLag)
	if m := w.servers["b"].slots["app"]; m.TwoPhase {
		t.Errorf("the mirror has two-phase at %v and stands at %v", m.TwoPhaseAt, m.Confirmed)
	}
}

// What a slot that decodes prepared transactions needs, on each major.
func TestTwoPhaseByMajor(t *testing.T) {
	for _, tc := range []struct {
		version  int
		at, fine bool
	}{
		{130999, true, false}, {140000, true, true}, {140000, false, false},
		{179999, false, false}, {180000, false, true}, {180000, true, true},
	} {
		pr := &pair{t: &tracked{located: true, slot: cluster.Slot{TwoPhase: true}}}
		pr.fact.Value.Node.ServerVersion = tc.version
		if tc.at {
			pr.t.slot.TwoPhaseAt = cluster.Some(cluster.LSN(0x100))
		}
		if why := pr.twoPhaseTrouble(); (why == "") != tc.fine {
			t.Errorf("%d, two_phase_at known %t: %q", tc.version, tc.at, why)
		}
	}
}
