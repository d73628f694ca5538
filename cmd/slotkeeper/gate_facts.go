package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/gate"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// gateKeeper gathers the facts of one question, and carries out its answer.
type gateKeeper struct {
	config *config.Config
	node   string
	roster func() (roster, error) // read once

	mu       sync.Mutex
	session  *postgres.Session // of the candidate
	local    *gate.Local
	store    *store
	timeline cluster.Timeline
}

// late is a fact that did not come in time.
const late = "no answer in time"

// gather asks everybody side by side until the given time, or until what has come
// decides.
func (g *gateKeeper) gather(ctx context.Context, until time.Time) gate.Facts {
	f := gate.Facts{Node: g.node}
	f.Local.Err, f.Ledger.Err, f.Rivals.Err = late, late, late
	bounded, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	g.roster = sync.OnceValues(func() (roster, error) { return readRoster(bounded, g.config) })
	locals, rivals := make(chan plan.Fact[gate.Local], 1), make(chan plan.Fact[gate.Field], 1)
	ledgers := make(chan plan.Fact[gate.Ledger], 1)
	refused := make(chan int, 1)
	timelines := make(chan cluster.Timeline, 1)
	go func() {
		local := fact(g.readLocal(bounded))
		timelines <- local.Value.Node.Timeline
		locals <- local
	}()
	go func() { rivals <- fact(g.readRivals(bounded)) }()
	go func() {
		ledgers <- fact(g.readLedger(bounded))
		refused <- g.readRefusals(bounded, timelines)
	}()
	over := time.After(time.Until(until))
	for range 4 {
		select {
		case f.Local = <-locals:
		case f.Ledger = <-ledgers:
		case f.Rivals = <-rivals:
		case f.Refusals = <-refused:
		case <-over:
			return f
		}
		if gate.Settled(time.Now(), gatePolicy(g.config), f) {
			return f
		}
	}
	if f.Local.OK() && f.Rivals.OK() {
		f.Rivals.Value.Me.Received, f.Rivals.Value.Me.Timeline = received(f.Local.Value.Node), f.Local.Value.Node.Timeline
	}
	return f
}

func fact[T any](v T, err error) plan.Fact[T] {
	f := plan.Fact[T]{Value: v, At: time.Now()}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Err = late
	case err != nil:
		f.Err = explain(err)
	}
	return f
}

// readLocal reads the candidate's own server, and proves its mirrors again.
func (g *gateKeeper) readLocal(ctx context.Context) (gate.Local, error) {
	all, err := g.roster()
	if err != nil {
		return gate.Local{}, err
	}
	m, err := all.member(g.node)
	if err != nil {
		return gate.Local{}, err
	}
	s, err := openSession(g.config, m)
	if err != nil {
		return gate.Local{}, err
	}
	read, err := s.Read(ctx)
	if err != nil {
		return gate.Local{}, err
	}
	local := gate.Local{Node: read.Node, Slots: read.Slots, Proofs: map[string]gate.Proof{}}
	g.mu.Lock()
	g.session, g.local, g.timeline = s, &local, read.Node.Timeline
	g.mu.Unlock()
	for _, slot := range read.Slots {
		at, ok := slot.Position()
		if !ok || slot.Marker == nil || slot.Marker.Kind != cluster.MarkMirror {
			continue
		}
		proof, err := s.ConsistentPoint(ctx, at, plan.DefaultMaxWalk)
		p := gate.Proof{Way: proof.Way}
		if err != nil {
			p.Err = explain(err)
		}
		local.Proofs[slot.Name] = p
	}
	return local, nil
}

// readLedger reads what the last controller wrote.
func (g *gateKeeper) readLedger(ctx context.Context) (gate.Ledger, error) {
	s, err := joinStore(ctx, g.config, quietLogger(io.Discard))
	if err != nil {
		return gate.Ledger{}, err
	}
	g.mu.Lock()
	g.store = s
	g.mu.Unlock()
	parts, err := loadLedger(ctx, s.client.Ledger())
	if err != nil {
		return gate.Ledger{}, err
	}
	shown, err := status.FromLedger(parts)
	if err != nil {
		return gate.Ledger{}, err
	}
	mem, err := status.Recall(parts)
	if err != nil {
		return gate.Ledger{}, err
	}
	return gate.FromLedger(shown, mem), nil
}

// readRefusals counts those of this failover. Where that is not known, none are
// counted: max_refusals bounds them by the next one that is.
func (g *gateKeeper) readRefusals(ctx context.Context, timelines <-chan cluster.Timeline) int {
	select {
	case timeline := <-timelines:
		g.mu.Lock()
		s := g.store
		g.mu.Unlock()
		if s == nil || timeline == 0 {
			return 0
		}
		a, err := s.client.Answers(ctx, timeline)
		if err != nil {
			return 0
		}
		return a.Refusals
	case <-ctx.Done():
		return 0
	}
}

// drop drops mirrors of this node under the fence of the last leader, and says
// what came of it.
func (g *gateKeeper) drop(ctx context.Context, names []string) string {
	g.mu.Lock()
	s, local := g.session, g.local
	g.mu.Unlock()
	if s == nil || local == nil || !local.Node.Fence.OK {
		return "what is not proven could not be dropped: there is no fence to do it under"
	}
	f := local.Node.Fence.V
	f.SystemID, f.Timeline = local.Node.SystemID, local.Node.Timeline
	outcomes, err := s.Drop(ctx, f, names)
	if err != nil {
		return "what is not proven could not be dropped: " + explain(err)
	}
	var dropped, left []string
	for _, o := range outcomes {
		if o.Code == cluster.CodeDropped {
			dropped = append(dropped, o.Name)
		} else {
			left = append(left, fmt.Sprintf("%s (%s)", o.Name, o.Code))
		}
	}
	said := "dropped, because it is not proven: " + strings.Join(dropped, ", ")
	switch {
	case len(left) > 0 && len(dropped) > 0:
		return said + "; could not drop " + strings.Join(left, ", ")
	case len(left) > 0:
		return "could not drop " + strings.Join(left, ", ")
	}
	return said
}
