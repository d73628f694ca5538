package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// withoutPrimary is the plan of a cycle without one primary: nothing is
// written, nothing withdrawn. A remembered verdict stays, its proof grows
// older, unless the standby itself is silent or shows that its mirror is gone.
func (c *cycle) withoutPrimary() Plan {
	c.condition(*c.lead.trouble)
	c.managerConditions()
	c.standbys = standbyNames(c.o, c.m, c.m.Primary)
	names := map[string]bool{}
	for p := range c.m.Pairs {
		names[p.Slot] = true
	}
	for name, note := range c.m.Slots {
		names[name] = names[name] || note.AbsentReads == 0 && c.p.wants(name, note.Database, note.Plugin)
	}
	for _, slot := range slices.Sorted(maps.Keys(names)) {
		if !names[slot] {
			continue
		}
		for _, node := range c.standbys {
			c.pl.Verdicts = append(c.pl.Verdicts, c.remembered(slot, node))
		}
	}
	c.dateConditions()
	c.pl.Memory = c.m
	c.pl.Wake = c.p.Interval / 4
	return c.pl
}

func (c *cycle) remembered(slot, node string) Verdict {
	note := c.m.Pairs[Pair{Slot: slot, Standby: node}]
	v := note.Judged
	v.Slot, v.Standby = slot, node
	fact := c.o.Nodes[node]
	t := &tracked{slot: cluster.Slot{Name: slot}}
	pr := &pair{t: t, node: node, fact: fact, note: note}
	if f := c.absentPrimary(pr, judged(v)); f != nil {
		v.State, v.Reason, v.Message, v.Hint = f.state, f.reason, f.message, f.hint
	}
	c.m.Pairs[Pair{Slot: slot, Standby: node}] = pr.note
	v.Since = since(c.now, v, note.Verdict)
	v.ProofAge = proofAge(c.now, note.ProvenAt)
	return v
}

// judged reports whether a verdict that was given while there was a primary says
// anything of the mirror itself.
func judged(v Verdict) bool { return v.State != "" && v.State != Unknown }

// preferSafe is what is left to do while there is no primary to make a mirror from.
const preferSafe = "prefer a standby whose verdict is SAFE when you promote one"

// absentPrimary gives what a standby's own read says against a remembered verdict.
func (c *cycle) absentPrimary(pr *pair, known bool) *finding {
	slot, fact := pr.t.slot.Name, pr.fact
	if f := silentRule(c, pr); f != nil {
		return f
	}
	if !fact.OK() || fact.Value.Node.SystemID != c.lead.systemID {
		return endpointRule(c, pr)
	}
	if f := c.resetRule(pr); f != nil {
		return f
	}
	mirror := c.slotOn(pr.node, slot)
	if c.m.Slots[slot].Failover && fact.Value.Node.SyncSlots {
		pr.server, pr.there = true, mirror
		return c.absentServer(pr, known)
	}
	if mirror == nil || !c.isMirror(*mirror) {
		return &finding{Unsafe, ReasonSlotMissing, fmt.Sprintf("%s has no mirror of %s, and there is no primary to make one from", pr.node, slot),
			preferSafe}
	}
	pr.mirror = mirror
	if mirror.Invalidated != "" {
		return lostRule(c, pr)
	}
	if f := unfitRule(c, pr); f != nil {
		f.hint = preferSafe // nothing can be shipped to it now
		return f
	}
	if f := c.absentOutrun(pr); f != nil {
		return f
	}
	if known {
		if pr.noteMoved(c.m.Slots[slot], false); pr.note.Moved {
			return movedFinding(pr, c.m.Slots[slot])
		}
	}
	if !known {
		return &finding{Unknown, ReasonStale, fmt.Sprintf("%s has a mirror of %s; whether it was protected is not known without a primary", pr.node, slot),
			preferSafe}
	}
	return nil
}

// absentOutrun: what the standby has received is all that it will have.
func (c *cycle) absentOutrun(pr *pair) *finding {
	known := c.m.Slots[pr.t.slot.Name]
	pr.note.noteOutrun(known.HighestF, known.LastAt, received(pr.fact.Value.Node))
	return c.outrun(pr, known.HighestF)
}
