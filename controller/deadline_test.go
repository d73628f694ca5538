package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// stuckSource answers once it has been asked once, or not at all.
type stuckSource struct {
	fakeSource
	stuck bool
}

func (s *stuckSource) Topology(ctx context.Context) (cluster.Topology, error) {
	if s.stuck {
		<-ctx.Done()
		return cluster.Topology{}, ctx.Err()
	}
	return s.fakeSource.Topology(ctx)
}

// Whatever hangs, a cycle ends by its deadline and a second, and the first cycle
// after it is whole: nothing needs a restart.
func TestEveryCycleEndsByItsDeadlineWhateverHangs(t *testing.T) {
	node := func(name string, calls ...string) func(*stage, bool) {
		return func(s *stage, on bool) {
			n := s.nodes[name]
			n.mu.Lock()
			defer n.mu.Unlock()
			n.hang = on && len(calls) == 0
			n.stuck = func(call string) bool { return on && strings.Contains(strings.Join(calls, " "), call) }
		}
	}
	source := &stuckSource{fakeSource: fakeSource{"a", "b", "c"}}
	for name, hang := range map[string]func(*stage, bool){
		"the topology":            func(_ *stage, on bool) { source.stuck = on },
		"the primary":             node("a"),
		"a standby":               node("b"),
		"the primary's snapshots": node("a", "snapshots"),
		"the primary's walks":     node("a", "walks"),
		"the primary's fence":     node("a", "fence"),
		"the primary's hold":      node("a", "hold"),
		"a standby's fence":       node("b", "fence"),
		"a standby's hold":        node("b", "hold"),
		"a standby's apply":       node("b", "apply"),
		"etcd":                    func(s *stage, on bool) { s.term.mu.Lock(); s.term.stuck = on; s.term.mu.Unlock() },
		"etcd, all but the first write": func(s *stage, on bool) {
			s.c.rememberNothing(on)
			s.term.mu.Lock()
			s.term.stuck = on
			s.term.mu.Unlock()
		},
		"a standby's fence and etcd": func(s *stage, on bool) {
			node("b", "fence")(s, on)
			s.c.rememberNothing(on)
			s.term.mu.Lock()
			s.term.stuck = on
			s.term.mu.Unlock()
		},
		"everything": func(s *stage, on bool) {
			s.term.mu.Lock()
			s.term.stuck = on
			s.term.mu.Unlock()
			for _, name := range []string{"a", "b", "c"} {
				node(name)(s, on)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.c.cfg.ReadTimeout = s.c.cfg.CycleTimeout // as the defaults have it
				s.c.deps.Source = source
				for name, n := range s.nodes {
					n.obeys(name, func() {})
				}
				hang(s, true)
				for range 4 {
					begun := time.Now()
					_, _ = s.c.Cycle(t.Context())
					if took := time.Since(begun); took > s.c.cfg.CycleTimeout+time.Second {
						t.Errorf("a cycle took %s", took)
					}
				}
				hang(s, false)
				time.Sleep(s.c.cfg.ReadTimeout) // what was asked meanwhile has ended
				s.cycle(t)
				time.Sleep(time.Second)
				s.cycle(t)
				if doc := s.cycle(t); pairOf(doc, "cdc", "b").Verdict != plan.Safe || pairOf(doc, "cdc", "c").Verdict != plan.Safe {
					t.Errorf("three cycles later b is %+v, c is %+v", pairOf(doc, "cdc", "b"), pairOf(doc, "cdc", "c"))
				}
			})
		})
	}
}

// rememberNothing takes the generation for written.
func (c *Controller) rememberNothing(on bool) {
	if on {
		c.ledger.generation = 1
	}
}

// A node that falls silent uses up the time for reading; those that have answered
// meanwhile have answered.
func TestASilentNodeTakesNothingFromTheOthers(t *testing.T) {
	for range 20 { // the order of nodes is not given
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			s.c.cfg.ReadTimeout = s.c.cfg.CycleTimeout
			s.cycle(t)
			s.nodes["b"].mu.Lock()
			s.nodes["b"].hang = true
			s.nodes["b"].mu.Unlock()
			doc := s.cycle(t)
			for _, m := range doc.Members {
				if (m.Error != "") != (m.Node == "b") {
					t.Errorf("member %s: %q", m.Node, m.Error)
				}
			}
		})
	}
}

// What was asked before a term says nothing of what another leader did since.
func TestAReadOfAnEarlierTermIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.c.cfg.ReadTimeout = time.Minute
		s.nodes["b"].hang = true
		s.cycle(t)
		time.Sleep(10 * time.Second)
		began := time.Now()
		if err := s.c.Begin(t.Context(), s.term); err != nil {
			t.Fatal(err)
		}
		s.nodes["b"].hang = false
		seen := s.c.observe(t.Context())
		if fact := seen.Nodes["b"]; !fact.OK() || fact.At.Before(began) {
			t.Errorf("b: %+v, the term began at %s", fact.Err, began)
		}
	})
}

func TestALaggingLedgerDoesNotLoseTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for name, n := range s.nodes {
			n.obeys(name, func() {})
		}
		s.cycle(t)
		s.term.stuck = true
		s.nodes["b"].err = errors.New("no route to b")
		doc := s.cycle(t)
		if p := pairOf(doc, "cdc", "b"); p.Verdict != plan.Unknown {
			t.Errorf("the status shows b as %s while etcd hangs", p.Verdict)
		}
	})
}

// A cycle that could not record what it must is seen: in the log, and in the status.
func TestAFailedCycleIsShown(t *testing.T) {
	s := newStage(t)
	s.term.fail = errors.New("etcd is away")
	_, err := s.c.Cycle(t.Context())
	if err == nil {
		t.Fatal("the cycle did not fail")
	}
	s.c.showFailure(err)
	doc, _ := s.c.Status()
	if doc.Complete || !hasFinding(doc, codeCycleFailed, "etcd is away") {
		t.Errorf("the status: complete %t, %+v", doc.Complete, doc.Conditions)
	}
	s.term.fail = nil
	if doc = s.cycle(t); hasFinding(doc, codeCycleFailed, "") {
		t.Error("it is shown after a good cycle")
	}
}

func hasFinding(doc status.Status, code, text string) bool {
	for _, f := range doc.Conditions {
		if f.Code == code && f.Hint != "" && strings.Contains(f.Message, text) {
			return true
		}
	}
	return false
}
