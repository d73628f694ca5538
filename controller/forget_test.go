package controller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// elected is an elector that gives one term.
type elected struct{ term Term }

func (e elected) Campaign(context.Context) (Term, error) { return e.term, nil }

func (e elected) Load(context.Context) (map[string][]byte, error) { return nil, nil }

func TestForget(t *testing.T) {
	s := newStage(t)
	s.c.deps.Elector = elected{s.term}
	s.nodes["c"].err = errors.New("connection refused")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx) }()
	err := s.c.RequestSync(ctx)
	for ErrNotLeading(err) { // the term may not have begun yet
		err = s.c.RequestSync(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	var refused *plan.NotForgettable
	if err := s.c.Forget(ctx, "b"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "b answers") {
		t.Errorf("for one that answers: %v", err)
	}
	if err := s.c.Forget(ctx, "z"); !errors.As(err, &refused) {
		t.Errorf("for one that is not known: %v", err)
	}
	if err := s.c.Forget(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var part struct {
		Memory plan.Memory `json:"memory"`
	}
	if err := json.Unmarshal(s.term.parts[status.PartCluster], &part); err != nil {
		t.Fatal(err)
	}
	if !part.Memory.Forgotten["c"] {
		t.Errorf("the ledger does not say it: %s", s.term.parts[status.PartCluster])
	}
}

func TestForgetAskedOfAFollower(t *testing.T) {
	s := newStage(t)
	s.c.deps.Elector = waiting{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx) }()
	if err := s.c.Forget(t.Context(), "c"); !ErrNotLeading(err) {
		t.Errorf("it gave %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
