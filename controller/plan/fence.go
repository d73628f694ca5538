package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// fence is what every writing step shows.
func (c *cycle) fence() cluster.Fence {
	return cluster.Fence{
		Scope: c.p.Scope, Store: c.m.Store, Epoch: c.m.Epoch, Owner: c.p.Owner,
		SystemID: c.lead.systemID, Timeline: c.lead.read.Node.Timeline,
	}
}

// fenceTrouble says why a node would refuse this controller, "" where it would
// not, or where its fence is taken over.
func (c *cycle) fenceTrouble(name string) string {
	if c.takesOver(name) {
		return ""
	}
	return c.refusal(c.o.Nodes[name].Value.Node.Fence)
}

// refusal is what a fence has against this controller, as the extension judges
// it. A later epoch of the same store is another leader's, and no leader can be
// later than one that holds the lease: then the revisions of this etcd went back.
func (c *cycle) refusal(f cluster.Opt[cluster.Fence]) string {
	switch {
	case !f.OK:
		return ""
	case f.V.Scope != c.p.Scope || f.V.Store != c.m.Store:
		return fmt.Sprintf("its fence belongs to scope %q of store %s (last raised by %s), this controller to scope %q of store %s", f.V.Scope, f.V.Store, orUnknown(f.V.Owner), c.p.Scope, c.m.Store)
	case f.V.Epoch > c.m.Epoch:
		return fmt.Sprintf("its fence was raised to epoch %d by %s, this controller leads with epoch %d: its etcd was restored from an older state, or another copy of it is in use", f.V.Epoch, orUnknown(f.V.Owner), c.m.Epoch)
	case f.V.Epoch == c.m.Epoch && f.V.Owner != c.p.Owner:
		return fmt.Sprintf("its fence was raised to this very epoch %d by %s: this controller's etcd was restored from an older state, or another copy of it is in use", f.V.Epoch, orUnknown(f.V.Owner))
	}
	return ""
}

// takesOver reports whether a fence that refuses this controller is replaced by
// its own: the operator has said so, which counts once for each node, or nobody
// has raised it for long. Never that of another scope: its mirrors are not ours.
func (c *cycle) takesOver(name string) bool {
	n := c.o.Nodes[name].Value.Node
	if c.refusal(n.Fence) == "" || n.Fence.V.Scope != c.p.Scope {
		return false
	}
	return c.silent(name) || c.p.TakeOver && !c.m.TakenOver[name]
}

// fenceSteps raises the fence on every node that answers before anything else
// is written, and again each LeaseTTL: its time is the heartbeat that others see.
func (c *cycle) fenceSteps() {
	for _, name := range c.targets() {
		n := c.o.Nodes[name].Value.Node
		last, raised := c.m.FencedAt[name]
		why, old := "", cluster.None[cluster.Fence]()
		switch {
		case c.takesOver(name):
			why, old = "taking over: "+c.refusal(n.Fence), n.Fence
		case !n.Fence.OK:
			why = "the node has no fence"
		case n.Fence.V.Epoch < c.m.Epoch:
			why = fmt.Sprintf("the node's fence is of epoch %d", n.Fence.V.Epoch)
		case !raised && heartbeatAge(n) < c.p.LeaseTTL:
			continue // of this epoch: this leadership has raised it, as another process of it (plan) can see
		case !raised:
			why = "heartbeat"
		case c.now.Sub(last) >= c.p.LeaseTTL:
			why = "heartbeat"
		default:
			continue
		}
		c.step(Step{ID: "fence/" + name, Stage: StageFence, Node: name, Kind: StepFence, Replaces: old, Why: why})
	}
}

// heartbeatAge is by the node's own clock: how long ago its fence was raised.
func heartbeatAge(n cluster.Node) time.Duration {
	if !n.Heartbeat.OK {
		return math.MaxInt64
	}
	return n.Clock.Sub(n.Heartbeat.V)
}

// targets are the nodes that may be written to: the primary, then the standbys.
// None where the primary refuses this controller: another one leads.
func (c *cycle) targets() []string {
	if c.fenceTrouble(c.lead.primary) != "" {
		return nil
	}
	names := []string{c.lead.primary}
	for _, name := range c.standbys {
		if c.writable(name) {
			names = append(names, name)
		}
	}
	return names
}

// step adds one to the plan. Whatever writes on a node needs the node's fence.
func (c *cycle) step(s Step) {
	s.OnPrimary, s.Fence = s.Node == c.lead.primary, c.fence()
	if s.Kind != StepFence && c.planned("fence/"+s.Node) {
		s.Needs = append([]string{"fence/" + s.Node}, s.Needs...)
	}
	c.pl.Steps = append(c.pl.Steps, s)
}

func (c *cycle) planned(id string) bool {
	for _, s := range c.pl.Steps {
		if s.ID == id {
			return true
		}
	}
	return false
}

func fencedRule(c *cycle, pr *pair) *finding {
	for _, name := range []string{pr.node, c.lead.primary} {
		if why := c.fenceTrouble(name); why != "" {
			return &finding{Unsafe, ReasonFenced, sentence(name+" refuses this controller", why), c.refusedHint(name)}
		}
	}
	return nil
}
