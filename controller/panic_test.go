package controller

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// words is a log for several goroutines.
type words struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *words) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.text.String(), text)
}

// A bug anywhere in a cycle is a failed cycle, and nothing more: the loop goes
// on, and leads on.
func TestAPanicAnywhereEndsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*stage, func())
		node    string // the one that is the worse for it; "": the whole cycle
	}{
		"dialling": {func(s *stage, bug func()) {
			dial := s.c.deps.Dial
			s.c.deps.Dial = func(m cluster.Member) (Node, error) { bug(); return dial(m) }
		}, ""},
		"the topology":   {func(s *stage, bug func()) { s.c.deps.Source = buggySource{s.c.deps.Source, bug} }, ""},
		"reading a node": {func(s *stage, bug func()) { s.buggy("b", "read", bug) }, "b"},
		"snapshots":      {func(s *stage, bug func()) { s.buggy("a", "snapshots", bug) }, ""},
		"walks":          {func(s *stage, bug func()) { s.buggy("a", "walks", bug) }, ""},
		"a step":         {func(s *stage, bug func()) { s.buggy("b", "fence", bug) }, "b"},
		"writing etcd": {func(s *stage, bug func()) {
			s.term.bug = func(call string) {
				if call == "save" {
					bug()
				}
			}
		}, ""},
		"asking how full etcd is": {func(s *stage, bug func()) {
			s.term.bug = func(call string) {
				if call == "space" {
					bug()
				}
			}
		}, "none"},
		"waiting on nodes": {func(s *stage, bug func()) { s.buggy("b", "watch", bug) }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			var log words
			var times int
			var mu sync.Mutex
			bug := func() {
				mu.Lock()
				times++
				first := times <= 2
				mu.Unlock()
				if first {
					panic("a bug in a test")
				}
			}
			led(t, func(s *stage) {
				s.nodes["a"].read.Slots = append(s.nodes["a"].read.Slots, fakeSlot("cdc"))
				for name, n := range s.nodes {
					n.obeys(name, func() {})
				}
				watchable(s)
				s.c.deps.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
				c.prepare(s, bug)
			}, func(s *stage) {
				time.Sleep(5 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				if times == 0 {
					t.Error("the scene is not set: nothing has panicked")
				}
				if !log.has("a bug in a test") || !log.has("panic_test.go") || !log.has("please report") {
					t.Error("the log does not say where it came from")
				}
				doc, ok := s.c.Status()
				if !ok || !doc.Complete || hasFinding(doc, codeCycleFailed, "") {
					t.Errorf("the loop has not recovered: %+v", doc)
				}
				if p := pairOf(doc, "cdc", "c"); p.Verdict != plan.Safe {
					t.Errorf("c is %s %s: %s", p.Verdict, p.Reason, p.Message)
				}
				if log.has("leadership lost") || log.has("giving it back") {
					t.Error("the leadership was given up")
				}
				if failed := log.has("cycle failed"); failed != (c.node == "") {
					t.Errorf("a whole cycle failed: %t", failed)
				}
			})
		})
	}
}

type buggySource struct {
	Source
	bug func()
}

func (b buggySource) Topology(ctx context.Context) (cluster.Topology, error) {
	b.bug()
	return b.Source.Topology(ctx)
}

// buggy has one call of a node run into a bug.
func (s *stage) buggy(node, call string, bug func()) {
	n := s.nodes[node]
	n.stuck = func(made string) bool {
		if made == call {
			bug()
		}
		return false
	}
}

// The ledger of a follower may hold anything.
func TestAPanicOfAFollowerIsShown(t *testing.T) {
	s := newStage(t)
	s.c.deps.Elector = buggyElector{}
	s.c.showLedger(t.Context())
	if doc, _ := s.c.Status(); !hasFinding(doc, "etcd_unreachable", "a bug") {
		t.Errorf("%+v", doc.Conditions)
	}
}

type buggyElector struct{ waiting }

func (buggyElector) Load(context.Context) (map[string][]byte, error) { panic("a bug") }

func TestAPanicWhileBeginningATermIsAnError(t *testing.T) {
	s := newStage(t)
	s.term.bug = func(string) { panic("a bug") }
	if err := s.c.Begin(t.Context(), s.term); err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("it gave %v", err)
	}
}

// Outside of cycles a panic would end the process, and with it the leadership
// that is to be given back, or the next try to get it.
func TestAPanicBetweenCyclesEndsNothing(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	panicked := false
	s.term.bug = func(string) { panicked = true; panic("a bug in a test") }
	s.c.recordLast()
	if !panicked {
		t.Error("the scene is not set: nothing is written at the end")
	}
	s.c.deps.Elector = buggyElector{}
	if term, err := s.c.campaign(t.Context()); term != nil || err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("a campaign gave %v, %v", term, err)
	}
}
