package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// peer is a member with its session and one read of it.
type peer struct {
	member  cluster.Member
	session *postgres.Session
	read    postgres.Read
	err     error
}

// readAll reads all members side by side. Close the peers when done.
func readAll(ctx context.Context, c *config.Config) ([]*peer, error) {
	topology, err := readTopology(ctx, c)
	if err != nil {
		return nil, err
	}
	peers := make([]*peer, 0, len(topology.Members))
	var all sync.WaitGroup
	for _, m := range topology.Members {
		p := &peer{member: m}
		peers = append(peers, p)
		if p.session, p.err = openSession(c, m); p.err != nil {
			continue
		}
		all.Go(func() { p.read, p.err = p.session.Read(ctx) })
	}
	all.Wait()
	return peers, nil
}

func closeAll(peers []*peer) {
	for _, p := range peers {
		if p.session != nil {
			p.session.Close()
		}
	}
}

// primaryOf names the primary among the peers by the same rule as the daemon's,
// nil where there is none.
func primaryOf(peers []*peer, now time.Time) *peer {
	observed := plan.Observation{Begun: now, Nodes: map[string]plan.Fact[plan.NodeRead]{}}
	for _, p := range peers {
		fact := plan.Fact[plan.NodeRead]{At: now, Value: plan.NodeRead{Node: p.read.Node, Slots: p.read.Slots}}
		if p.err != nil {
			fact.Err = p.err.Error()
		}
		observed.Nodes[p.member.Name] = fact
		observed.Topology.Value.Members = append(observed.Topology.Value.Members, p.member)
	}
	observed.Topology.At = now
	name := plan.FindPrimary(observed, plan.Memory{})
	for _, p := range peers {
		if p.member.Name == name {
			return p
		}
	}
	return nil
}

// silentMember is the line of a member that did not answer. Its name is Patroni's
// key, and may hold anything.
func silentMember(name, why string) string {
	return output.Printable(oneLine(fmt.Sprintf("slotkeeper: member %s did not answer: %s", name, why)))
}

// explain is an error of a node with its hint.
func explain(err error) string {
	var f *postgres.Fault
	if errors.As(err, &f) {
		return oneLine(withHint(f.Error(), f.Hint()))
	}
	return oneLine(err.Error())
}
