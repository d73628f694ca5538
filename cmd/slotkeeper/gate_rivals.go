package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/patroni"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/gate"
)

// roster is who is in the cluster, and what Patroni says of them where it is there.
type roster struct {
	members []cluster.Member
	patroni *patroni.View // nil without Patroni
}

func readRoster(ctx context.Context, c *config.Config) (roster, error) {
	if c.Cluster.Source == config.SourcePatroni {
		view, err := readPatroni(ctx, c)
		return roster{members: view.Topology().Members, patroni: &view}, err
	}
	topology, err := readTopology(ctx, c)
	return roster{members: topology.Members}, err
}

func (r roster) member(name string) (cluster.Member, error) {
	var names []string
	for _, m := range r.members {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return cluster.Member{}, fmt.Errorf("--node %s is not a member; the members are %s", name, strings.Join(names, ", "))
}

// field is what Patroni's keys say of how candidates are weighed.
func (r roster) field(me string) gate.Field {
	f := gate.Field{Me: r.candidate(me)}
	if v := r.patroni; v != nil {
		f.MaximumLag, f.Leader = v.Config.MaximumLag, v.Status.Optime
		// Asked for and not begun yet, synchronous mode bars nobody.
		f.Sync, f.SyncLeader = v.Config.Synchronous && v.Sync.Leader != "", v.Sync.Leader
		if v.Config.Quorum {
			f.Quorum = cluster.Some(v.Sync.Quorum)
		}
	}
	return f
}

func (r roster) candidate(name string) gate.Candidate {
	c := gate.Candidate{Name: name, Priority: 1}
	if r.patroni == nil {
		return c
	}
	m, ok := r.patroni.Member(name)
	if !ok {
		c.Trouble = "Patroni does not know it any more"
		return c
	}
	c.NoFailover, c.Priority = m.Tags.NoFailover, int(m.Tags.FailoverPriority)
	c.Sync = r.patroni.Sync.Synchronous(name)
	return c
}

// readRivals asks the other members' servers what they have received, as Patroni
// would. Those that have not answered a little before time is up are silent, and
// no reason to know nothing of the others: the host of the old primary may be a
// black hole.
func (g *gateKeeper) readRivals(ctx context.Context) (gate.Field, error) {
	all, err := g.roster()
	if err != nil {
		return gate.Field{}, err
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/8))
		defer cancel()
	}
	f := all.field(g.node)
	var others []cluster.Member
	for _, m := range all.members {
		if m.Name != g.node {
			others = append(others, m)
		}
	}
	f.Others = make([]gate.Candidate, len(others))
	silent := make([]string, len(others))
	var asked sync.WaitGroup
	for i, m := range others {
		f.Others[i] = all.candidate(m.Name)
		asked.Go(func() { g.ask(ctx, m, &f.Others[i]) })
		asked.Go(func() { silent[i] = g.askPatroni(ctx, all, m.Name) })
	}
	asked.Wait()
	for i, why := range silent {
		if f.Others[i].Trouble == "" {
			f.Others[i].Trouble = why
		}
	}
	return f, nil
}

// askPatroni says why a member's Patroni does not answer: it would not take the
// leader key either, however sound its server is. Any answer is a sign of life,
// also one that refuses, or a certificate that this program does not know.
func (g *gateKeeper) askPatroni(ctx context.Context, all roster, name string) string {
	if all.patroni == nil {
		return ""
	}
	m, ok := all.patroni.Member(name)
	if !ok {
		return "" // candidate says so
	}
	api, err := newREST(g.config)
	if err != nil {
		return "" // it is not known, and no reason to pass over a safe node
	}
	_, err = api.Status(ctx, m)
	var dialled *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "its Patroni does not answer"
	case errors.As(err, &dialled) && dialled.Op == "dial":
		return "its Patroni does not answer: " + oneLine(err.Error())
	}
	return ""
}

func (g *gateKeeper) ask(ctx context.Context, m cluster.Member, c *gate.Candidate) {
	s, err := openSession(g.config, m)
	if err != nil {
		c.Trouble = explain(err)
		return
	}
	defer s.Close()
	read, err := s.Read(ctx)
	switch {
	case err != nil:
		c.Trouble = explain(err)
	case !read.Node.InRecovery:
		c.Trouble = "it is not a standby"
	default:
		c.Received, c.Timeline = received(read.Node), read.Node.Timeline
	}
}

func received(n cluster.Node) cluster.LSN { return max(n.Receive.Or(0), n.Replay.Or(0)) }
