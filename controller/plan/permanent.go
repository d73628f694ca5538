package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// A logical slot that stands in Patroni's own `slots` is made, copied to standbys
// and moved there by Patroni. It is judged and never touched.

// patroniKeeps reports whether Patroni does all that itself.
func patroniKeeps(m *cluster.Manager, s cluster.Slot) bool {
	if m == nil || !m.UseSlots {
		return false
	}
	p, listed := m.Slots.Permanent[s.Name]
	return listed && p.Kind == cluster.Logical && permanentDrops(p, s) == ""
}

// aside reports whether no read of a slot is kept for anybody.
func (c *cycle) aside(t *tracked) bool {
	return c.serverAlone(t) || patroniKeeps(c.o.Topology.Value.Manager, t.slot)
}

// noteAside remembers them for what is asked before the next plan is made.
func (c *cycle) noteAside() {
	c.m.Aside = map[string]bool{}
	for _, t := range c.slots {
		if patroniKeeps(c.o.Topology.Value.Manager, t.slot) {
			c.m.Aside[t.slot.Name] = true
		}
	}
}

// permanentRule: Patroni copies the state of the slot and moves the copy on, with
// nothing that shows it to be consistent, or its rows to be there.
func permanentRule(c *cycle, pr *pair) *finding {
	if !patroniKeeps(c.o.Topology.Value.Manager, pr.t.slot) {
		return nil
	}
	what := fmt.Sprintf("%s has no copy of it yet", pr.node)
	if pr.there != nil {
		what = fmt.Sprintf("nothing proves the copy on %s", pr.node)
	}
	return &finding{Unsafe, ReasonNotOurs, fmt.Sprintf("slot %s stands in Patroni's slots, so Patroni keeps it itself: %s", pr.t.slot.Name, what),
		"take it out of slots in Patroni's dynamic configuration, with ignore_slots matching it first: then slotkeeper keeps it"}
}
