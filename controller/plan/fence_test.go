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

// refused is a world in which another etcd's controller has fenced every node; its
// heartbeat is by each node's own clock.
func refused(t *testing.T) (w *world, beat func()) {
	w = settled(t)
	for _, s := range w.servers {
		s.node.Fence.V.Store, s.node.Fence.V.Owner = "store-2", "other"
	}
	beat = func() {
		for _, s := range w.servers {
			s.node.Heartbeat = cluster.Some(s.node.Clock)
		}
	}
	return w, beat
}

// passing lets time pass, for the nodes' clocks too.
func (w *world) passing(d time.Duration) {
	w.now = w.now.Add(d)
	for _, s := range w.servers {
		s.node.Clock = s.node.Clock.Add(d)
	}
}

// D13: a node's clock jumps ahead, so that a fence that is raised all the time looks
// as if nobody had for long.
func TestAClockThatJumpsMakesNoFenceSilent(t *testing.T) {
	w, beat := refused(t)
	beat()
	w.turn()
	for _, s := range w.servers {
		s.node.Clock = s.node.Clock.Add(time.Hour)
	}
	for range 30 { // the other raises it each lease_ttl
		for range 9 {
			w.passing(time.Second)
			w.turn()
			if len(w.plan.Steps) != 0 {
				t.Fatalf("it is taken over: %s", describe(w.plan))
			}
		}
		w.passing(time.Second)
		beat()
	}
}

// A fence is silent when this controller has seen so, also where the node's clock
// went back and nothing ever looks old.
func TestASilentFenceIsTakenOver(t *testing.T) {
	for name, jump := range map[string]time.Duration{"": 0, "its clock goes back": -time.Hour} {
		w, beat := refused(t)
		beat()
		w.turn()
		for _, s := range w.servers {
			s.node.Clock = s.node.Clock.Add(jump)
		}
		for range 97 { // a cycle takes a moment too
			w.passing(time.Second)
			w.servers["a"].up = w.now.Second()%7 != 0 // it is not always read
			w.turn()
			if len(w.plan.Steps) != 0 {
				t.Fatalf("%s: too soon: %s", name, describe(w.plan))
			}
		}
		w.servers["a"].up = true
		w.passing(2 * time.Second)
		w.turn()
		if len(w.plan.Steps) < 3 {
			t.Fatalf("%s: after ten times lease_ttl nothing is done", name)
		}
		for _, step := range w.plan.Steps[:3] {
			if step.Kind != StepFence || step.Replaces != w.servers[step.Node].node.Fence {
				t.Errorf("%s: after ten times lease_ttl: %s", name, describe(w.plan))
			}
		}
	}
}

// Another process knows nothing of what this one has watched, nor does a new term.
func TestWatchingAFenceBeginsAnewWithTheLeader(t *testing.T) {
	w, beat := refused(t)
	beat()
	w.turn()
	w.passing(time.Hour)
	w.newLeader()
	w.turn()
	if len(w.plan.Steps) != 0 {
		t.Errorf("taken over by what it has not seen: %s", describe(w.plan))
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
