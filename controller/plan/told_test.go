package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestConditionsSayWhatTheyShould(t *testing.T) {
	w := settled(t)
	w.servers["b"].node.Feedback = false
	w.servers["b"].node.PrimarySlotName, w.servers["c"].node.PrimarySlotName = "gone", "dead"
	w.servers["a"].slots["dead"] = &cluster.Slot{Name: "dead", Kind: cluster.Physical, Invalidated: "wal_removed"}
	w.turn()
	for _, code := range []string{CondFeedbackOff, CondPhysicalSlotMissing, CondPhysicalSlotInvalidated} {
		if !w.has(code) {
			t.Errorf("no %s in %v", code, w.conditions)
		}
	}
	since := w.conditions[0].Since
	w.turn()
	if w.conditions[0].Since != since {
		t.Error("the condition is dated anew")
	}
	if w.has(CondNoSafeCandidate) {
		t.Error("no_safe_candidate although all is SAFE")
	}
	w.servers["b"].up, w.servers["c"].up = false, false
	w.turn()
	if !w.has(CondNoSafeCandidate) {
		t.Error("no_safe_candidate is missing")
	}
}

// What an unselected slot's mirror keeps must be said by somebody.
func TestMirrorsOfUnselectedSlotsAreTold(t *testing.T) {
	w := settled(t)
	w.createSlot("other")
	w.turns(3)
	w.policy.Exclude = []Match{{Name: "app"}}
	w.turns(3)
	told := 0
	for _, cond := range w.conditions {
		if cond.Code == CondMirrorUnselected {
			told++
			if !strings.Contains(cond.Message, "select: app; ") {
				t.Errorf("it says %q", cond.Message)
			}
		}
	}
	if told != 2 || w.servers["b"].slots["app"] == nil {
		t.Errorf("%d conditions, want one for each standby, and the mirror left where it is: %v", told, w.conditions)
	}
	delete(w.servers["b"].slots, "app")
	delete(w.servers["c"].slots, "app")
	w.turn()
	if w.has(CondMirrorUnselected) {
		t.Error("it is told still")
	}
}

// A fence of another etcd does not go away by itself: the hint says how it does.
func TestAForeignFenceHasAWayOut(t *testing.T) {
	w := settled(t)
	for _, s := range w.servers {
		s.node.Fence.V.Store = "gone"
	}
	w.turn()
	hints := []string{w.conditions[0].Hint}
	for _, v := range w.verdicts {
		hints = append(hints, v.Hint)
	}
	for _, hint := range hints {
		if !strings.Contains(hint, "--take-over") {
			t.Errorf("the hint is %q", hint)
		}
	}
	if !w.has(CondForeignEpoch) || len(w.verdicts) != 2 {
		t.Errorf("the scene is not set: %v %v", w.conditions, w.verdicts)
	}
}

func TestStuckRestartAndLag(t *testing.T) {
	w := settled(t)
	w.write(100 << 20)
	app(w, "a").Confirmed = w.primary().node.Insert
	w.receive("b", w.primary().node.Insert.V)
	w.receive("c", w.primary().node.Insert.V)
	w.turn()
	w.now = w.now.Add(6 * time.Minute)
	w.turn()
	if !w.has(CondRestartStuck) || !w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}

func TestWhatTheCycleCatchesUpWithIsNoLag(t *testing.T) {
	w := settled(t)
	w.write(100 << 20)
	app(w, "a").Confirmed = w.primary().node.Insert
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}

// A mirror whose plugin may be used no longer would fail its consumer.
func TestPluginWithdrawnFromAMirror(t *testing.T) {
	w := settled(t)
	answer(cluster.CodePluginMissing, `"wal2json" is not among output_plugin_libraries`)(w)
	w.catchUp("app")
	w.replayAll()
	w.turns(3)
	w.mustBe(t, "app", "b", Unsafe, ReasonPluginMissing)
	w.mustBe(t, "app", "c", Safe, "")
	w.answer = nil
	w.now = w.now.Add(DefaultInterval)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
}
