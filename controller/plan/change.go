package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// propose decides whether the pair gets a change: the newest kept read that the
// standby has replayed, if that is not behind the mirror.
func (c *cycle) propose(pr *pair) {
	t := pr.t
	if pr.server || !c.canWrite(pr) || !t.located || t.held || pr.noRoom || pr.best < 0 || pr.drop != "" || c.rest(pr) {
		return
	}
	if c.holdOn(pr.node).state == holdUnsettled {
		return // the standby would refuse it: its own hold must be saved first
	}
	if pr.fact.Value.Node.WalLevel != "logical" || pr.twoPhaseTrouble() != "" || (pr.there != nil && !c.changeable(pr)) {
		return
	}
	k := t.kept[pr.best]
	if pr.there != nil && !c.replaces(pr) && !advances(pr, k) {
		return
	}
	if c.tooSoon(pr, k) {
		return
	}
	pr.send, pr.change = true, cluster.Change{
		Name: t.slot.Name, Plugin: t.slot.Plugin, DatabaseOID: t.slot.DatabaseOID, TwoPhase: t.slot.TwoPhase, TwoPhaseAt: k.TwoPhaseAt,
		Position: k.Position, Snapshot: k.Snapshot, SnapshotAt: k.SnapshotAt, Source: k.Source,
	}
	if pr.note.Tried.Position.Restart == k.Position.Restart {
		pr.change.Resume = pr.note.Resume
	}
}

// changeable: only what is ours and what nobody is using is touched.
func (c *cycle) changeable(pr *pair) bool {
	return c.removable(*pr.there) && pr.there.ActivePID == 0 && pr.there.Invalidated == ""
}

// replaces reports whether what stands there is no mirror of this slot any
// more, so that its position says nothing: another incarnation, beyond the fork
// of the timeline, or what was an original before this node became a standby.
func (c *cycle) replaces(pr *pair) bool {
	s := pr.there
	if s.Marker.Kind == cluster.MarkOriginal || !pr.t.lineage(s.Marker.Source) || pastFork(*s, c.lead.read.Node) {
		return true
	}
	return s.Plugin != pr.t.slot.Plugin || s.TwoPhase != pr.t.slot.TwoPhase || s.DatabaseOID != pr.t.slot.DatabaseOID
}

// advances reports whether k brings the mirror forward, or mends what is gone
// from under it. Never backward, in any field.
func advances(pr *pair, k Kept) bool {
	at, ok := pr.there.Position()
	if !ok || k.Position.Behind(at) {
		return false
	}
	if k.Position != at || k.TwoPhaseAt != pr.there.TwoPhaseAt {
		return true
	}
	return !pr.there.WALok || snapshotGone(*pr.there)
}

// snapshotGone: a mirror proven by its file is proven no longer without it.
func snapshotGone(s cluster.Slot) bool {
	return s.Marker != nil && (s.Marker.Way == "file" || s.Marker.Way == laterFile) && s.Snapshot != cluster.SnapshotValid
}

// tooSoon holds back a change that has just come to nothing, until something in
// it has changed or an interval has passed. An unfinished walk goes on at once.
func (c *cycle) tooSoon(pr *pair, k Kept) bool {
	tried := pr.note.Tried
	if tried.At.IsZero() || pr.note.Resume != "" || c.now.Sub(tried.At) >= c.p.Interval || tried.Snapshot != k.Snapshot.OK {
		return false
	}
	switch tried.Code {
	case cluster.CodeAheadOfReplay, cluster.CodeRetry, cluster.CodeNotPinned, cluster.CodeBusyFence, cluster.CodeInUse:
		return tried.Position == k.Position
	}
	return tried.Position.Restart == k.Position.Restart
}

// applySteps sends a standby's changes: one call for those that the holds cover
// already, so that nothing else can stop them, and one for those that wait for a
// hold to be lowered in this plan.
func (c *cycle) applySteps(node string) {
	var covered, waiting []cluster.Change
	own := c.holdOn(node)
	needPrimary, needOwn := c.planned("lower/"+c.lead.primary), c.planned("lower/"+node)
	for _, pr := range c.mine(node) {
		x := pr.change.Position.CatalogXmin
		switch {
		case !pr.send:
		case c.holds(c.hold, x) && c.holds(own, x):
			covered = append(covered, pr.change)
		default:
			waiting = append(waiting, pr.change)
		}
	}
	if len(covered) > 0 {
		c.step(Step{ID: "apply/" + node, Stage: StageApply, Node: node, Kind: StepApply, Changes: covered, MaxBytes: c.p.walkShare(covered),
			Why: "the standby has replayed these reads, and the holds cover them"})
	}
	if len(waiting) == 0 {
		return
	}
	var needs []string
	if needPrimary {
		needs = append(needs, "lower/"+c.lead.primary)
	}
	if needOwn {
		needs = append(needs, "lower/"+node)
	}
	c.step(Step{ID: "apply/" + node + "/held", Stage: StageApply, Node: node, Kind: StepApply, Changes: waiting, MaxBytes: c.p.walkShare(waiting), Needs: needs,
		Why: "the standby has replayed these reads; the holds are lowered for them first"})
}

// leastWalk is what one of many walks may read at least, so that each comes on.
const leastWalk = 1 << 20

// walkShare divides what one apply may walk among the changes that come without
// a snapshot file: a transaction that is open for long makes the walk of every
// slot long, and the cycle must not grow with it.
func (p Policy) walkShare(changes []cluster.Change) int64 {
	walks := 0
	for _, ch := range changes {
		if !ch.Snapshot.OK {
			walks++
		}
	}
	return max(p.MaxWalk/int64(max(walks, 1)), leastWalk)
}

// holds reports whether a hold covers x in the generation of today.
func (c *cycle) holds(h hold, x cluster.XID) bool {
	return h.pins(x) && h.generation == c.m.Generation
}
