package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/primary"
	"github.com/slotkeeper/slotkeeper/standby"
)

// Topology makes the stage a controller.Source.
func (s *stage) Topology(context.Context) (cluster.Topology, error) {
	return cluster.Topology{Members: []cluster.Member{s.member(s.a), s.member(s.b)}}, nil
}

// term is a leadership that nobody contests, with a ledger that keeps nothing.
type term struct{}

func (term) Epoch() cluster.Epoch                            { return 1 }
func (term) Store() string                                   { return "store" }
func (term) Valid(time.Time) bool                            { return true }
func (term) Context() context.Context                        { return context.Background() }
func (term) Load(context.Context) (map[string][]byte, error) { return nil, nil }
func (term) Save(context.Context, map[string][]byte) error   { return nil }
func (term) Space(context.Context) (controller.Space, error) { return controller.Space{}, nil }
func (term) Resign(context.Context) error                    { return nil }

// node is a member as the controller uses it.
type node struct{ *postgres.Session }

func dial(m cluster.Member) (controller.Node, error) {
	s, err := postgres.New(m, sessionOptions())
	return node{s}, err
}

func (n node) Read(ctx context.Context) (plan.NodeRead, error) {
	r, err := n.Session.Read(ctx)
	return plan.NodeRead{Node: r.Node, Slots: r.Slots, Walsenders: r.Walsenders}, err
}

func (n node) Snapshots(ctx context.Context, at []cluster.LSN) (map[cluster.LSN][]byte, error) {
	return primary.Snapshots(ctx, n.Session, at)
}

func (n node) Walks(ctx context.Context, wanted []plan.WalkWanted, maxBytes int64) (map[string]plan.Walk, error) {
	asked := make([]primary.Walk, len(wanted))
	for i, w := range wanted {
		asked[i] = primary.Walk{Position: w.Position, Resume: w.Resume}
	}
	answers, err := primary.Walks(ctx, n.Session, asked, maxBytes)
	walks := map[string]plan.Walk{}
	for i, a := range answers {
		walks[wanted[i].Slot] = plan.Walk{Way: a.Way, FileAt: a.ProvenAt, File: a.File, Resume: a.Resume}
	}
	return walks, err
}

func (n node) Do(ctx context.Context, s plan.Step) ([]cluster.Outcome, error) {
	switch s.Kind {
	case plan.StepFence:
		answer, err := n.RaiseFence(ctx, s.Fence)
		return []cluster.Outcome{{Code: cluster.Code(answer)}}, err
	case plan.StepMark:
		return primary.Mark(ctx, n.Session, s.Fence, s.Names, s.Incarnations)
	case plan.StepHold:
		return n.Hold(ctx, s.Fence, s.Generation, s.Wants, s.WAL)
	case plan.StepStamp:
		return n.Stamp(ctx, s.Fence, s.Generation, s.Names)
	case plan.StepApply:
		return standby.Apply(ctx, n.Session, s.Fence, s.Changes, s.MaxBytes)
	case plan.StepDrop:
		return n.Drop(ctx, s.Fence, s.Names)
	}
	return nil, fmt.Errorf("step %s: kind %q is not known", s.ID, s.Kind)
}
