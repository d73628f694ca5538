package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ownHolds are the slots that slotkeeper needs on a node beside the mirrors.
const ownHolds = 2

// shareRoom gives a standby's free slots to the mirrors that are there already,
// then to others by name: a stable choice, and nobody is put out.
func (c *cycle) shareRoom(node string) {
	read, ok := c.readable(node)
	if !ok || read.Node.MaxSlots <= 0 {
		return
	}
	room := c.available(read) - ownHolds
	for _, s := range read.Slots {
		if c.ours(s) && s.Kind == cluster.Logical {
			room--
		}
	}
	for _, pr := range c.mine(node) {
		if pr.there != nil || !pr.t.located || pr.server {
			continue
		}
		pr.noRoom = room <= 0
		room--
	}
}

// available is how many slots of a node slotkeeper can have: all that others do not use.
func (c *cycle) available(read NodeRead) int {
	ours := 0
	for _, s := range read.Slots {
		if c.ours(s) {
			ours++
		}
	}
	return read.Node.MaxSlots - (max(read.Node.UsedSlots, len(read.Slots)) - ours)
}

// neededSlots is how many slots slotkeeper needs on a standby for all that is selected.
func (c *cycle) neededSlots(node string) int {
	n := ownHolds
	for _, t := range c.slots {
		if t.located && !c.serverKeeps(t, node) {
			n++
		}
	}
	return n
}

func roomRule(c *cycle, pr *pair) *finding {
	if !pr.noRoom {
		return nil
	}
	read := pr.fact.Value
	return &finding{Unsafe, ReasonNoFreeSlot, fmt.Sprintf("%s has no slot free for %s: %d are needed, %d are available", pr.node, pr.t.slot.Name, c.neededSlots(pr.node), c.available(read)),
		fmt.Sprintf("raise max_replication_slots there to %d or more and restart it", read.Node.MaxSlots+c.neededSlots(pr.node)-c.available(read))}
}
