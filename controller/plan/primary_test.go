package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestNoPrimaryChangesNothing(t *testing.T) {
	w := settled(t)
	before := w.verdict("app", "b")
	w.servers["a"].up = false
	w.now = w.now.Add(7 * time.Second)
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondNoLeader) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
	v := w.verdict("app", "b")
	if v.State != Safe || !v.Since.Equal(before.Since) || v.ProofAge.V < 7*time.Second {
		t.Fatalf("verdict %+v", v)
	}
	delete(w.servers["c"].slots, "app")
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonSlotMissing)
}

func TestSplitBrainWritesNowhere(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.servers["a"].up = true
	w.createSlot("more")
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondSplitBrain) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
	w.servers["a"].up = false
	w.turn()
	if w.memory.Primary != "b" || w.has(CondSplitBrain) {
		t.Fatalf("primary %q, conditions %v", w.memory.Primary, w.conditions)
	}
	// The new primary falls silent while the old one is back: it is not taken for one.
	w.servers["b"].up, w.servers["a"].up = false, true
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondSplitBrain) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
}

func TestRestoredPrimaryIsNotFollowed(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.turn()
	w.servers["b"].node.Timeline = 1
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondTimelineReset) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
}

func TestAnotherSystemIsRefused(t *testing.T) {
	w := settled(t)
	w.servers["c"].node.SystemID = 99
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonWrongEndpoint)
	w.mustBe(t, "app", "b", Safe, "")
	for _, s := range w.plan.Steps {
		if s.Node == "c" {
			t.Errorf("a step for it: %s", s.ID)
		}
	}
}

func TestPromotionKeepsTheMirrorsOfTheOthers(t *testing.T) {
	w := settled(t)
	w.promote("b")
	w.turns(2)
	w.mustBe(t, "app", "c", Safe, "")
	w.mustBe(t, "app", "a", Unknown, ReasonUnreachable)
	if m := w.servers["b"].slots["app"].Marker; m.Kind != cluster.MarkOriginal {
		t.Errorf("app on b is marked %s", m.Kind)
	}
	if w.servers["b"].slots[cluster.WALHoldName] != nil {
		t.Error("the WAL hold is still on the new primary")
	}
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	if lag := w.verdict("app", "c").LagBytes; lag.V != 0 {
		t.Errorf("lag %v", lag)
	}
	if w.has(CondSlotRecreated) || w.has(CondMirrorReplaced) {
		t.Errorf("conditions %v", w.conditions)
	}
}

func TestD21HoldOfTheNewPrimaryOfAnotherGeneration(t *testing.T) {
	w := settled(t)
	// b's hold is not reached by the new generation that the loss of a's hold begins.
	delete(w.servers["a"].slots, cluster.HoldName)
	w.refuse = func(s Step) string {
		if s.Node == "b" {
			return "connection reset"
		}
		return ""
	}
	w.turn()
	w.refuse = nil
	w.mustBe(t, "app", "c", Safe, "")
	w.promote("b")
	w.turn()
	if v := w.verdict("app", "c"); v.State == Safe {
		t.Fatalf("app on c is SAFE: %+v", v)
	}
	if w.servers["b"].slots["app"] != nil {
		t.Error("what was not stamped on b is still there for a consumer")
	}
}

func TestC22DemotedPrimaryFollows(t *testing.T) {
	w := settled(t)
	w.write(0x5000) // what never reaches anybody
	w.confirm("app", 0x34000, 0x34800, w.nextXID)
	w.turn()
	w.promote("b")
	w.turn()
	a := w.servers["a"]
	b := w.servers["b"]
	a.up, a.node.InRecovery, a.node.Timeline, a.node.History = true, true, 2, b.node.History
	a.node.Replay, a.node.Receive = b.node.Insert, b.node.Insert
	w.turns(3)
	w.mustBe(t, "app", "a", Safe, "")
	if m := a.slots["app"]; m.Marker.Kind != cluster.MarkMirror || m.Confirmed.V != b.slots["app"].Confirmed.V {
		t.Errorf("app on a is %+v", m)
	}
}

func TestSlotThatDidNotComeThroughThePromotion(t *testing.T) {
	w := settled(t)
	w.createSlot("late")
	w.refuse = func(s Step) string {
		if s.Node == "b" && s.Kind == StepApply {
			return "timeout"
		}
		return ""
	}
	w.turn()
	w.mustBe(t, "late", "b", Pending, ReasonBusy)
	w.refuse = nil
	w.promote("b")
	w.turns(3)
	if !w.has(CondSlotMissing) {
		t.Errorf("conditions %v", w.conditions)
	}
	if w.servers["b"].slots["late"] != nil {
		t.Error("it was made at the current position")
	}
}

func TestGenerationIsLearnedFromMarkers(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, cluster.HoldName)
	w.turns(2)
	w.memory = Memory{Epoch: 12, Store: store}
	w.turn()
	if w.memory.Generation != 3 || w.memory.Continuous != 2 { // one later than what is marked
		t.Fatalf("generation %d, continuous since %d", w.memory.Generation, w.memory.Continuous)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

// A server of another cluster that takes writes is no second primary of this one.
func TestWritableServerOfAnotherSystemIsNoPrimary(t *testing.T) {
	w := settled(t)
	c := w.servers["c"]
	c.node.SystemID, c.node.InRecovery, c.node.Timeline = 99, false, 7
	w.turn()
	if w.memory.Primary != "a" || w.has(CondSplitBrain) {
		t.Errorf("primary %q, conditions %v", w.memory.Primary, w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
}
