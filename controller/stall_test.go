package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// hangsIn has the node's calls of a kind end without an answer, after the time
// that a query may take. The function that it gives mends the node.
func (n *fakeNode) hangsIn(kind plan.StepKind, err error) (mend func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	obeys := n.do
	n.do = func(step plan.Step) ([]cluster.Outcome, error) {
		if step.Kind != kind {
			return obeys(step)
		}
		time.Sleep(2 * time.Second)
		return nil, err
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.do = obeys
	}
}

// reaches has the slot confirmed up to a position.
func (s *stage) reaches(at cluster.LSN) {
	n := s.nodes["a"]
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.read.Slots {
		if n.read.Slots[i].Name == "cdc" {
			n.read.Slots[i].Confirmed = cluster.Some(at)
		}
	}
}

// A standby that answers reads and hangs in what writes costs the others one call
// and not one in each cycle; they are followed meanwhile, its pairs say why they
// are not, and it heals by itself.
func TestAStandbyThatHangsInWritesIsLeftAlone(t *testing.T) {
	for _, kind := range []plan.StepKind{plan.StepFence, plan.StepHold, plan.StepApply} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.c.cfg.ReadTimeout = s.c.cfg.CycleTimeout
				for name, n := range s.nodes {
					n.obeys(name, func() {})
				}
				mend := s.nodes["b"].hangsIn(kind, fmt.Errorf("applying: %w", context.DeadlineExceeded))
				at := cluster.LSN(200)
				follow := func() { // a cycle after which c is where the slot is
					t.Helper()
					at++
					s.reaches(at)
					doc := s.cycle(t)
					if p := pairOf(doc, "cdc", "c"); p.Verdict != plan.Safe || p.Mirror.V.Confirmed != at {
						t.Fatalf("c is %+v, the slot is at %s", p, at)
					}
					if p := pairOf(doc, "cdc", "b"); p.Verdict != plan.Pending || p.Reason != plan.ReasonBusy {
						t.Fatalf("b is %+v", p)
					}
				}
				began := time.Now()
				follow()
				if cost := time.Since(began); cost != 2*time.Second {
					t.Fatalf("the scene is not set: the hanging call cost %s", cost)
				}
				for hung := range 2 { // twice as long after each
					rest := s.c.cfg.ReadTimeout << hung
					ends := time.Now().Add(rest)
					for time.Now().Before(ends) {
						began = time.Now()
						follow()
						if cost := time.Since(began); cost != 0 {
							t.Errorf("a cycle waited %s for it, %s before its time", cost, ends.Sub(began))
						}
						time.Sleep(s.c.cfg.Interval)
					}
					if p := pairOf(s.shown(t), "cdc", "b"); !strings.Contains(p.Message, "node b gave no answer in time") || !strings.Contains(p.Message, string(kind)) || p.Hint == "" {
						t.Errorf("b's pair says %q, %q", p.Message, p.Hint)
					}
					began = time.Now()
					follow()
					if cost := time.Since(began); cost != 2*time.Second {
						t.Errorf("after %s it was given no other chance (%s)", rest, cost)
					}
				}
				mend()
				time.Sleep(maxPause * s.c.cfg.ReadTimeout)
				s.cycle(t)
				if p := pairOf(s.cycle(t), "cdc", "b"); p.Verdict != plan.Safe {
					t.Errorf("mended it is %+v", p)
				}
			})
		})
	}
}

// A server that was started or promoted since is not what hung, and is written to at
// once: on a new primary there may be a mirror that no consumer must find.
func TestAStartOrAPromotionEndsTheRest(t *testing.T) {
	for name, happens := range map[string]func(*cluster.Node){
		"start": func(n *cluster.Node) { n.Started = n.Started.Add(time.Minute) },
		"promotion": func(n *cluster.Node) {
			n.InRecovery, n.Insert, n.Timeline = false, cluster.Some(cluster.LSN(1000)), n.Timeline+1
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.c.cfg.ReadTimeout = s.c.cfg.CycleTimeout
				for name, n := range s.nodes {
					n.obeys(name, func() {})
				}
				b := s.nodes["b"]
				mend := b.hangsIn(plan.StepApply, context.DeadlineExceeded)
				s.cycle(t)
				mend()
				b.mu.Lock()
				before := len(b.steps)
				happens(&b.read.Node)
				b.mu.Unlock()
				if name == "promotion" {
					s.nodes["a"].err = errors.New("connection refused")
				}
				s.cycle(t)
				if len(b.steps) == before {
					t.Errorf("nothing is written there: %+v", pairOf(s.shown(t), "cdc", "b"))
				}
			})
		})
	}
}

// An error that the server gives is no call that hangs: it is tried again in the
// next cycle, as before.
func TestAWriteThatFailsAtOnceIsNoWriteThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for name, n := range s.nodes {
			n.obeys(name, func() {})
		}
		mend := s.nodes["b"].hangsIn(plan.StepFence, errors.New("the server closed the connection"))
		s.cycle(t)
		mend()
		s.cycle(t)
		time.Sleep(time.Second)
		s.cycle(t)
		if p := pairOf(s.cycle(t), "cdc", "b"); p.Verdict != plan.Safe {
			t.Errorf("it is %+v", p)
		}
	})
}

// The last call of a cycle may have only a moment of it: that it was cut short
// says nothing of its node.
func TestAWriteCutShortByTheOthersIsNotItsNodesFault(t *testing.T) {
	cfg := Config{ReadTimeout: 5 * time.Second, CycleTimeout: 5 * time.Second}
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		took  time.Duration
		over  bool
		rests bool
	}{
		"within the cycle":               {100 * time.Millisecond, false, true},
		"at its end, after a moment":     {100 * time.Millisecond, true, false},
		"at its end, after most of it":   {4 * time.Second, true, true},
		"at its end, after half of it":   {2500 * time.Millisecond, true, true},
		"at its end, after less than it": {2499 * time.Millisecond, true, false},
	} {
		var s stall
		s.note(cluster.Node{}, plan.StepApply, context.DeadlineExceeded, c.took, c.over, now, cfg)
		if why := s.rests("b", cluster.Node{}, now.Add(time.Second)); (why != "") != c.rests {
			t.Errorf("%s: %q", name, why)
		}
	}
}
