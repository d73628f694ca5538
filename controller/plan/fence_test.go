package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestFenceIsRaisedFirstAndAgain(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.turn()
	if got := w.plan.Steps; got[0].ID != "fence/a" || got[1].ID != "fence/b" {
		t.Fatalf("%s", describe(w.plan))
	}
	for _, s := range w.plan.Steps[2:] {
		if s.Needs[0] != "fence/"+s.Node {
			t.Errorf("%s needs %v", s.ID, s.Needs)
		}
	}
	w.turns(5)
	if kinds(w.plan)["fence/a"] {
		t.Error("the heartbeat is too fast")
	}
	w.now = w.now.Add(10 * time.Second)
	w.turn()
	if !kinds(w.plan)["fence/a"] {
		t.Error("no heartbeat")
	}
}

func TestForeignFence(t *testing.T) {
	w := settled(t)
	other := w.servers["b"].node.Fence.V
	other.Store = "store-2"
	w.servers["b"].node.Fence = cluster.Some(other)
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonFenced)
	w.mustBe(t, "app", "c", Safe, "")
	if !w.has(CondForeignEpoch) {
		t.Errorf("conditions %v", w.conditions)
	}
	later := w.servers["a"].node.Fence.V
	later.Epoch = 99
	w.servers["a"].node.Fence = cluster.Some(later)
	w.turn()
	if len(w.plan.Steps) != 0 {
		t.Errorf("steps in spite of a later controller: %s", describe(w.plan))
	}
}

// `slotkeeper plan` looks on beside a daemon and knows nothing of what that has
// done: a fence of this leadership that was raised a moment ago, by the node's own
// clock, is raised.
func TestAFenceThatThisLeadershipHasRaisedIsRaised(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		want bool
	}{
		"just now": {time.Second, false}, "almost a lease ago": {10*time.Second - 1, false}, "a lease ago": {10 * time.Second, true}, "long ago": {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t)
			clock := w.now.Add(time.Hour) // not the controller's
			for _, s := range w.servers {
				s.node.Clock, s.node.Heartbeat = clock, cluster.Some(clock.Add(-c.age))
			}
			w.memory.FencedAt = nil
			w.turn()
			if got := kinds(w.plan); got["fence/a"] != c.want || got["fence/b"] != c.want {
				t.Errorf("%s", describe(w.plan))
			}
		})
	}
}

func TestNothingIsProposedForANodeThatRefuses(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.servers["b"].node.Fence.V.Store = "store-2"
	w.turn()
	for _, pr := range w.plan.pairs {
		if pr.send != (pr.node == "c") {
			t.Errorf("a change for %s: %t", pr.node, pr.send)
		}
	}
}
