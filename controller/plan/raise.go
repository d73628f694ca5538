package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// raise lets the holds go to the oldest catalog_xmin that anything still needs:
// mirrors everywhere as they were read, kept reads, and the slots themselves.
// Never before this leader has read each known member, and not often.
func (c *cycle) raise() {
	if c.hold.state != holdValid || c.hold.generation != c.m.Generation || c.planned("lower/"+c.lead.primary) {
		return
	}
	if !c.m.RaisedAt.IsZero() && c.now.Sub(c.m.RaisedAt) < c.p.RaiseEvery {
		return
	}
	target, ok := c.raiseTarget()
	if !ok {
		return
	}
	for _, node := range c.targets() {
		h := c.holdOn(node)
		if h.state != holdValid || h.generation != c.m.Generation || !h.xmin.Precedes(target) || c.planned("lower/"+node) {
			continue
		}
		c.step(Step{ID: "raise/" + node, Stage: StageRaise, Node: node, Kind: StepHold, Generation: c.m.Generation,
			Wants: []cluster.Want{{CatalogXmin: target}}, Why: "every mirror and every kept read is past what is held"})
	}
}

func (c *cycle) raiseTarget() (cluster.XID, bool) {
	var xs []cluster.XID
	for _, note := range c.m.Standbys {
		if note.GivenUp {
			continue
		}
		if note.ReadAt.IsZero() {
			return 0, false
		}
		xs = append(xs, note.OldestXmin)
	}
	for _, t := range c.slots {
		xs = append(xs, t.slot.CatalogXmin.Or(0), t.slot.EffectiveCatalogXmin.Or(0))
		for _, k := range t.kept {
			xs = append(xs, k.Position.CatalogXmin)
		}
	}
	oldest := cluster.OldestXID(xs...)
	return oldest.V, oldest.OK
}

// stampStep gives the new generation to the mirrors that were held throughout,
// or that their own slot still pins and the hold has taken over.
func (c *cycle) stampStep(node string) {
	var names []string
	for _, pr := range c.mine(node) {
		if pr.stamp && pr.drop == "" && c.canWrite(pr) {
			names = append(names, pr.t.slot.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	var needs []string
	if primary := "lower/" + c.lead.primary; c.planned(primary) {
		needs = append(needs, primary)
	}
	c.step(Step{ID: "stamp/" + node, Stage: StageApply, Node: node, Kind: StepStamp, Names: names, Generation: c.m.Generation, Needs: needs,
		Why: "the hold of the new generation covers these mirrors too"})
}
