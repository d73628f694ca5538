package main

import (
	"context"
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/primary"
	"github.com/slotkeeper/slotkeeper/standby"
)

// sessionOptions is what all sessions have in common.
func sessionOptions(c *config.Config) postgres.Options {
	return postgres.Options{
		User:           c.Postgres.User,
		DBName:         c.Postgres.DBName,
		Passfile:       c.Postgres.Passfile,
		SSLMode:        c.Postgres.SSLMode,
		ConnectTimeout: c.Postgres.ConnectTimeout,
		QueryTimeout:   c.Postgres.QueryTimeout,
	}
}

// openSession makes a session of a member; it does not connect. A member that
// cannot be reached by what is known of it has none.
func openSession(c *config.Config, m cluster.Member) (*postgres.Session, error) {
	if m.Unusable != "" {
		return nil, fmt.Errorf("the address of %s is not known: %s", m.Name, m.Unusable)
	}
	return postgres.New(m, sessionOptions(c))
}

// dialer makes nodes of members.
func dialer(c *config.Config) controller.Dialer {
	return func(m cluster.Member) (controller.Node, error) {
		s, err := openSession(c, m)
		if err != nil {
			return nil, err
		}
		return &node{session: s}, nil
	}
}

// node is a member's session as the controller uses it.
type node struct {
	session *postgres.Session
}

func (n *node) Read(ctx context.Context) (plan.NodeRead, error) {
	r, err := n.session.Read(ctx)
	if err != nil {
		return plan.NodeRead{}, err
	}
	return plan.NodeRead{Node: r.Node, Slots: r.Slots, Walsenders: r.Walsenders}, nil
}

func (n *node) Snapshots(ctx context.Context, at []cluster.LSN) (map[cluster.LSN][]byte, error) {
	return primary.Snapshots(ctx, n.session, at)
}

func (n *node) Walks(ctx context.Context, wanted []plan.WalkWanted, maxBytes int64) (map[string]plan.Walk, error) {
	asked := make([]primary.Walk, len(wanted))
	for i, w := range wanted {
		asked[i] = primary.Walk{Position: w.Position, Resume: w.Resume}
	}
	answers, err := primary.Walks(ctx, n.session, asked, maxBytes)
	if err != nil {
		return nil, err
	}
	walks := make(map[string]plan.Walk, len(wanted))
	for i, a := range answers {
		walks[wanted[i].Slot] = plan.Walk{Way: a.Way, FileAt: a.ProvenAt, File: a.File, Resume: a.Resume}
	}
	return walks, nil
}

func (n *node) Watch(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error) {
	return n.session.Watch(ctx, since, target)
}

func (n *node) Close() { n.session.Close() }

// Do makes the one call that a step stands for.
func (n *node) Do(ctx context.Context, s plan.Step) ([]cluster.Outcome, error) {
	switch s.Kind {
	case plan.StepFence:
		return n.raise(ctx, s)
	case plan.StepMark:
		return primary.Mark(ctx, n.session, s.Fence, s.Names, s.Incarnations)
	case plan.StepHold:
		return n.session.Hold(ctx, s.Fence, s.Generation, s.Wants, s.WAL)
	case plan.StepStamp:
		return n.session.Stamp(ctx, s.Fence, s.Generation, s.Names)
	case plan.StepApply:
		return n.apply(ctx, s)
	case plan.StepSessions:
		return standby.EndSessions(ctx, n.session, s.Fence, s.Names)
	case plan.StepDrop:
		return n.session.Drop(ctx, s.Fence, s.Names)
	case plan.StepFailover:
		return n.fenced(ctx, s, func() ([]cluster.Outcome, error) {
			return primary.SetFailover(ctx, n.session, s.Fence, s.Names)
		})
	case plan.StepGate:
		return n.fenced(ctx, s, func() ([]cluster.Outcome, error) {
			return n.session.SetStandbySlots(ctx, s.Names)
		})
	}
	return nil, fmt.Errorf("step %s: kind %q is not known", s.ID, s.Kind)
}

// apply makes and moves mirrors. The connection that waits for changes may be one
// of the sessions that are too old for a new mirror.
func (n *node) apply(ctx context.Context, s plan.Step) ([]cluster.Outcome, error) {
	rows, err := standby.Apply(ctx, n.session, s.Fence, s.Changes, s.MaxBytes)
	for _, row := range rows {
		if row.Code == cluster.CodeOldSession {
			n.session.WatchAnew()
			break
		}
	}
	return rows, err
}

// raise shows the fence to the node, in place of another one where the step says so.
func (n *node) raise(ctx context.Context, s plan.Step) ([]cluster.Outcome, error) {
	if s.Replaces.OK {
		// The extension compares: a fence that was raised meanwhile stays.
		answer, err := n.session.RemoveFence(ctx, s.Replaces.V)
		if err != nil {
			return nil, err
		}
		if answer != "removed" && answer != "absent" {
			return []cluster.Outcome{fenceOutcome(answer)}, nil
		}
	}
	answer, err := n.session.RaiseFence(ctx, s.Fence)
	if err != nil {
		return nil, err
	}
	return []cluster.Outcome{fenceOutcome(answer)}, nil
}

// fenced is for what the server itself does, which knows of no fence: the fence is
// shown right before it. Between the two another leader may come, who does
// the same again.
func (n *node) fenced(ctx context.Context, s plan.Step, do func() ([]cluster.Outcome, error)) ([]cluster.Outcome, error) {
	answer, err := n.session.RaiseFence(ctx, s.Fence)
	if err != nil {
		return nil, err
	}
	if fenceOutcome(answer).Name == "" {
		return do()
	}
	refused := cluster.Outcome{Code: cluster.Code(answer), Detail: "The node's fence refuses this controller."}
	if s.Kind == plan.StepGate {
		return []cluster.Outcome{refused}, nil // its names are no slots of the node
	}
	var all []cluster.Outcome
	for _, name := range s.Names {
		refused.Name = name
		all = append(all, refused)
	}
	return all, nil
}

// fenceOutcome puts raise_fence's answer into the form of the other calls. A
// refusal carries the hold's name: like a refused hold it stops whatever needs it.
func fenceOutcome(answer string) cluster.Outcome {
	o := cluster.Outcome{Code: cluster.Code(answer)}
	if answer != "raised" && answer != "same" {
		o.Name = cluster.HoldName
	}
	return o
}
