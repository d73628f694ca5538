package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// fence is what every writing step shows.
func (c *cycle) fence() cluster.Fence {
	return cluster.Fence{
		Scope: c.p.Scope, Store: c.m.Store, Epoch: c.m.Epoch, Owner: c.p.Owner,
		SystemID: c.lead.systemID, Timeline: c.lead.read.Node.Timeline,
	}
}

// fenceTrouble says why a node would refuse this controller, "" where it would not.
func (c *cycle) fenceTrouble(n cluster.Node) string {
	f := n.Fence
	switch {
	case !f.OK:
		return ""
	case f.V.Scope != c.p.Scope || f.V.Store != c.m.Store:
		return fmt.Sprintf("its fence belongs to scope %q of store %s, this controller to scope %q of store %s", f.V.Scope, f.V.Store, c.p.Scope, c.m.Store)
	case f.V.Epoch > c.m.Epoch:
		return fmt.Sprintf("its fence was raised to epoch %d by %s, this controller leads with epoch %d", f.V.Epoch, orUnknown(f.V.Owner), c.m.Epoch)
	}
	return ""
}

func (c *cycle) foreignFence(n cluster.Node) bool {
	return n.Fence.OK && (n.Fence.V.Scope != c.p.Scope || n.Fence.V.Store != c.m.Store)
}

// fenceSteps raises the fence on every node that answers before anything else
// is written, and again each LeaseTTL: its time is the heartbeat that others see.
func (c *cycle) fenceSteps() {
	for _, name := range c.targets() {
		n := c.o.Nodes[name].Value.Node
		last, raised := c.m.FencedAt[name]
		why := ""
		switch {
		case !n.Fence.OK:
			why = "the node has no fence"
		case n.Fence.V.Epoch < c.m.Epoch:
			why = fmt.Sprintf("the node's fence is of epoch %d", n.Fence.V.Epoch)
		case !raised:
			why = "this leadership has not raised it yet"
		case c.now.Sub(last) >= c.p.LeaseTTL:
			why = "heartbeat"
		default:
			continue
		}
		c.step(Step{ID: "fence/" + name, Stage: StageFence, Node: name, Kind: StepFence, Why: why})
	}
}

// targets are the nodes that may be written to: the primary, then the standbys.
// None where the primary refuses this controller: another one leads.
func (c *cycle) targets() []string {
	if c.fenceTrouble(c.lead.read.Node) != "" {
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
	for _, at := range []struct {
		name string
		node cluster.Node
	}{{pr.node, pr.fact.Value.Node}, {c.lead.primary, c.lead.read.Node}} {
		if why := c.fenceTrouble(at.node); why != "" {
			hint := fencedHint
			if c.foreignFence(at.node) {
				hint = foreignHint
			}
			return &finding{Unsafe, ReasonFenced, sentence(at.name+" refuses this controller", why), hint}
		}
	}
	return nil
}
