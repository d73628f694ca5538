package plan

import (
	"fmt"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// protection is what a mirror's catalog rows are worth.
type protection int

const (
	protNone       protection = iota // no mirror of ours
	protGap                          // rows may be gone
	protUnsettled                    // the hold is not saved: it cannot be told
	protWitnessed                    // not held, but the slot itself still pins it: hold and stamp again
	protContinuous                   // held throughout, its marker is of the generation before
	protWhole
)

// settleGeneration learns the generation, and begins a new one where what was
// held is not held any more, or where a member is given up.
func (c *cycle) settleGeneration() {
	c.hold = c.examineHold(c.lead.read.Slots)
	lost := c.m.Generation == 0 && c.seenGeneration() > 0
	c.learnGeneration()
	if c.hold.state >= holdUnsettled && c.hold.generation < c.m.Continuous {
		c.hold.state, c.hold.why = holdGone, fmt.Sprintf("it is of generation %d, and the holds were gone in generation %d", c.hold.generation, c.m.Continuous)
	}
	if c.hold.broken() && c.established() {
		c.m.Generation++
		c.m.Continuous = c.m.Generation
	}
	if c.hold.state == holdValid {
		c.m.HoldGen = max(c.m.HoldGen, c.hold.generation)
	}
	if lost {
		// The ledger was, and who is not here is not known: from now on no raise waits
		// for its mirrors. Those that are here were held to this day.
		c.m.Generation++
	}
	c.floors = map[string]int64{}
	for name, note := range c.m.Standbys {
		c.floors[name] = max(c.m.Continuous, note.MinGeneration)
	}
	c.leaveBehind(slices.Concat(c.raisedPast(), c.giveUp, c.strangers, c.outlived()))
}

// seenGeneration is the highest that any node's mirrors or hold are marked with.
func (c *cycle) seenGeneration() int64 {
	seen := int64(0)
	for _, fact := range c.o.Nodes {
		if !fact.OK() || fact.Value.Node.SystemID != c.lead.systemID {
			continue
		}
		for _, s := range fact.Value.Slots {
			if c.ours(s) && (s.Marker.Kind == cluster.MarkMirror || s.Marker.Kind == cluster.MarkHold) {
				seen = max(seen, s.Marker.Generation)
			}
		}
	}
	return seen
}

func (c *cycle) learnGeneration() {
	if seen := c.seenGeneration(); seen > c.m.Generation {
		c.m.Generation, c.m.Continuous = seen, seen
	}
	c.m.Generation = max(c.m.Generation, 1)
	if c.m.Continuous == 0 {
		c.m.Continuous = c.m.Generation
	}
}

// established reports whether a hold that mirrors may count on has been there, of
// this generation or of one before it in which none was gone: remembered, or shown
// by what is marked with it.
func (c *cycle) established() bool {
	if c.m.HoldGen >= c.m.Continuous || c.hold.state == holdGone && c.hold.generation >= c.m.Continuous {
		return true
	}
	for _, name := range c.standbys {
		read, _ := c.readable(name)
		for _, s := range read.Slots {
			if c.isMirror(s) && s.Marker.Generation >= c.m.Continuous {
				return true
			}
		}
	}
	return false
}

// raisedPast names the standbys with a mirror that counts as held and that the
// primary's hold is past.
func (c *cycle) raisedPast() []string {
	if c.hold.state != holdValid {
		return nil
	}
	var names []string
	for _, name := range c.standbys {
		read, _ := c.readable(name)
		for _, s := range read.Slots {
			if c.isMirror(s) && s.Marker.Generation >= c.floors[name] && !c.hold.pins(s.CatalogXmin.Or(0)) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// leaveBehind begins a new generation: the mirrors of these members may not
// come back into the old one when the hold is lowered later (a slot born after
// a raise can take it back to where rows are gone).
func (c *cycle) leaveBehind(names []string) {
	if len(names) == 0 {
		return
	}
	c.m.Generation++
	for _, name := range names {
		note := c.m.Standbys[name]
		note.MinGeneration = c.m.Generation
		c.m.Standbys[name], c.floors[name] = note, c.m.Generation
	}
}

// protectionOf judges one mirror of a slot.
func (c *cycle) protectionOf(t *tracked, node string, mirror cluster.Slot) protection {
	if c.hold.state == holdUnsettled {
		return protUnsettled
	}
	x := mirror.CatalogXmin.Or(0)
	if mirror.Marker.Generation >= c.floors[node] && c.hold.pins(x) {
		if mirror.Marker.Generation == c.m.Generation && c.hold.generation == c.m.Generation {
			return protWhole
		}
		return protContinuous
	}
	sameSlot := mirror.Marker.Timeline == c.m.Timeline && exactlySame(mirror.Marker.Source, t.slot.Incarnation)
	if sameSlot && !t.recreated && t.witnesses(x) {
		return protWitnessed
	}
	return protGap
}

// exactlySame is stricter than Same: a witness must be known to be the one.
func exactlySame(a, b cluster.Incarnation) bool {
	return a.Inode == b.Inode && a.Birth.OK == b.Birth.OK && a.Same(b)
}

// coverSlots keeps of the kept reads those whose rows are there for sure: held
// since the slot itself pinned them, or still pinned by it and to be held now.
func (c *cycle) coverSlots() {
	for _, t := range c.slots {
		switch {
		case t.slot.Invalidated != "":
			t.kept = nil
		case c.hold.state != holdUnsettled:
			t.kept = c.covered(t)
		}
		t.kept = c.pruneKept(t.kept)
		for _, k := range t.kept {
			if !c.hold.pins(k.Position.CatalogXmin) {
				c.want(t, k.Position.CatalogXmin)
			}
		}
	}
}

func (c *cycle) covered(t *tracked) []Kept {
	var kept []Kept
	for _, k := range t.kept {
		x := k.Position.CatalogXmin
		witnessed := exactlySame(k.Source, t.slot.Incarnation) && t.witnesses(x)
		k.HoldPinned = c.hold.pins(x) && (k.HoldPinned || witnessed)
		if k.HoldPinned || witnessed {
			kept = append(kept, k)
		}
	}
	return kept
}

// want notes that the primary's hold must go down to x, with t as the witness.
func (c *cycle) want(t *tracked, x cluster.XID) {
	if old, ok := c.wants[t.slot.Name]; !ok || x.Precedes(old) {
		c.wants[t.slot.Name] = x
	}
}
