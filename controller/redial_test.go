package controller

import (
	"errors"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// A certificate or a passfile that a session cannot be made without may come
// after the daemon has begun: nobody restarts it for that.
func TestASessionThatCouldNotBeMadeIsTriedAgain(t *testing.T) {
	s := newStage(t)
	for name, n := range s.nodes {
		n.obeys(name, func() {})
	}
	dial, missing := s.c.deps.Dial, true
	s.c.deps.Dial = func(m cluster.Member) (Node, error) {
		if m.Name == "b" && missing {
			return nil, errors.New(`reading the passfile for node "b": no such file`)
		}
		return dial(m)
	}
	s.cycle(t)
	if p := pairOf(s.cycle(t), "cdc", "b"); p.Reason != plan.ReasonUnreachable {
		t.Fatalf("without its passfile b is %+v", p)
	}
	missing = false
	s.cycle(t)
	s.cycle(t)
	if p := pairOf(s.cycle(t), "cdc", "b"); p.Verdict != plan.Safe {
		t.Errorf("b is %+v", p)
	}
}
