package plan

import (
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// lowerPrimary takes the primary's hold down to what is wanted, each want with
// the slot as its witness, makes it where it is not there, and moves it to the
// generation of today. What it pins now is kept: this step raises nothing.
func (c *cycle) lowerPrimary() {
	s := Step{ID: "lower/" + c.lead.primary, Stage: StageLowerPrimary, Node: c.lead.primary, Kind: StepHold, Generation: c.m.Generation}
	for _, slot := range slices.Sorted(maps.Keys(c.wants)) {
		if c.hold.state == holdUnsettled {
			break // see below
		}
		t := c.tracks[slot]
		s.Wants = append(s.Wants, cluster.Want{CatalogXmin: c.wants[slot], Slot: slot, Source: t.slot.Incarnation})
	}
	if w := c.slotOn(c.lead.primary, cluster.WALHoldName); w != nil && c.ours(*w) {
		s.WAL = cluster.Some(cluster.LSN(0))
		s.Why = "the WAL hold of a standby has no place on a primary"
	}
	switch {
	case len(s.Wants) > 0 && c.hold.broken():
		s.Why = "the hold must be made: " + c.hold.why
	case len(s.Wants) > 0:
		s.Why = "the hold does not reach back to these slots' catalog_xmin"
	case c.hold.state == holdUnsettled:
		s.Why = "the hold must be saved: " + c.hold.why
	case !c.hold.broken() && c.hold.generation != c.m.Generation:
		s.Why = "the hold is of an earlier generation"
	case s.WAL.OK && !c.hold.broken():
	default:
		return
	}
	if c.hold.state == holdMissing && !c.established() && c.still() != "" {
		return // the first one is made with the first mirror
	}
	s.Wants = keepFirst(c.hold, s.Wants)
	c.step(s)
}

// keepFirst puts what a hold pins now before what is wanted of it. A hold that
// is not saved gets no wants at all, which saves it as it is: its file may pin
// less than memory shows, so that a keep would fail, and without one the call
// could raise it.
func keepFirst(h hold, wants []cluster.Want) []cluster.Want {
	switch h.state {
	case holdValid:
		return slices.Insert(wants, 0, cluster.Want{CatalogXmin: h.xmin})
	case holdUnsettled:
		return nil
	}
	return wants
}

// needed is per slot the oldest catalog_xmin that some node must have held: of
// its mirrors anywhere and of its kept reads.
func (c *cycle) needed() map[string]cluster.XID {
	need := map[string]cluster.XID{}
	add := func(slot string, x cluster.XID) {
		if old, ok := need[slot]; x.Normal() && (!ok || x.Precedes(old)) {
			need[slot] = x
		}
	}
	for _, t := range c.slots {
		for _, k := range t.kept {
			add(t.slot.Name, k.Position.CatalogXmin)
		}
	}
	for _, pr := range c.pairs {
		if pr.mirror != nil && pr.prot != protGap {
			add(pr.t.slot.Name, pr.mirror.CatalogXmin.Or(0))
		}
	}
	return need
}

// lowerStandby keeps a standby's own hold as low as the primary's must be: it
// acts from the moment of a promotion, for the mirrors of the others. The same
// call sets the WAL hold.
func (c *cycle) lowerStandby(node string) {
	own := c.holdOn(node)
	s := Step{ID: "lower/" + node, Stage: StageLowerStandbys, Node: node, Kind: StepHold, Generation: c.m.Generation, WAL: c.walHold(node)}
	need := c.needed()
	for _, slot := range slices.Sorted(maps.Keys(need)) {
		if !own.pins(need[slot]) {
			s.Wants = append(s.Wants, cluster.Want{CatalogXmin: need[slot], Slot: slot, Source: c.tracks[slot].slot.Incarnation})
		}
	}
	older := !own.broken() && own.generation != c.m.Generation
	switch {
	case len(s.Wants) > 0 && own.broken():
		s.Why = "the standby's hold must be made: " + own.why
	case own.state == holdUnsettled:
		s.Why = "the standby's hold must be saved: " + own.why
	case len(s.Wants) > 0:
		s.Why = "the standby's hold does not reach back to these slots' catalog_xmin"
	case older:
		s.Why = "the standby's hold is of an earlier generation"
	case s.WAL.OK && s.WAL.V != 0:
		s.Why = "slots that are not mirrored here yet will need this WAL"
	case s.WAL.OK && !own.broken():
		s.Why = "no slot waits for WAL any more"
	default:
		return
	}
	if own.state == holdGone && own.generation >= c.m.Generation {
		return // it is dropped first: see dropUsedHold
	}
	if own.state == holdMissing && c.still() != "" {
		return
	}
	s.Wants = keepFirst(own, s.Wants)
	if primary := "lower/" + c.lead.primary; c.planned(primary) && (len(s.Wants) > 1 || older || own.broken()) {
		s.Needs = append(s.Needs, primary)
	}
	c.step(s)
}
