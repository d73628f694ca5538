package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// index finds slots by name: each pair asks for some, and a scan for each would
// make a thousand slots a million comparisons.
type index struct {
	slots map[string]map[string]*cluster.Slot // per node
	holds map[string]hold                     // per node
}

// slotOn gives a node's slot of that name, nil where there is none.
func (c *cycle) slotOn(node, name string) *cluster.Slot {
	named, ok := c.index.slots[node]
	if !ok {
		slots := c.o.Nodes[node].Value.Slots
		named = make(map[string]*cluster.Slot, len(slots))
		for i := range slots {
			named[slots[i].Name] = &slots[i]
		}
		c.index.slots[node] = named
	}
	return named[name]
}

// holdOn is what a node's own hold is worth, as this cycle's read showed it.
func (c *cycle) holdOn(node string) hold {
	h, ok := c.index.holds[node]
	if !ok {
		h = c.examineHold(c.o.Nodes[node].Value.Slots)
		c.index.holds[node] = h
	}
	return h
}
