package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// absentReads is in how many successive complete reads of one primary, epoch
// and timeline a slot must be absent before its mirrors go.
const absentReads = 2

// removable: on a node in recovery, a logical slot with our marker is ours to
// replace or drop: a mirror, or the original of a primary that is one no longer.
// What the server's own worker keeps never is.
func (c *cycle) removable(s cluster.Slot) bool {
	return c.ours(s) && s.Kind == cluster.Logical && !s.Temporary && !s.Synced &&
		(s.Marker.Kind == cluster.MarkMirror || s.Marker.Kind == cluster.MarkOriginal)
}

// removal decides whether what stands there must go although the slot is on the
// primary: what is not proven does not exist. It is made again from a new read.
func (c *cycle) removal(pr *pair) {
	m := pr.there
	if m == nil || !c.removable(*m) || m.ActivePID != 0 || !c.canWrite(pr) || c.still() != "" || c.m.Aside[m.Name] {
		return
	}
	at, positioned := m.Position()
	switch {
	case pr.server:
		pr.drop = "it keeps the server's own worker from copying any failover slot"
	case c.replaces(pr) && pr.best >= 0 && positioned && pr.t.kept[pr.best].Position.Behind(at) && m.Marker.Timeline != c.m.Timeline:
		pr.drop = "it goes back to another slot or timeline and is ahead of this one"
	case m.Marker.Kind == cluster.MarkOriginal && pr.best < 0:
		pr.drop = "it was an original when this node was the primary, and there is no read yet to replace it with"
	case m.Invalidated != "":
		pr.drop = "it is invalidated: " + m.Invalidated
	case pr.prot == protGap:
		pr.drop = "its catalog rows were not held throughout"
	case pastFork(*m, c.lead.read.Node) && pr.best < 0:
		pr.drop = "it is past the fork of the timeline, and there is no read yet to replace it with"
	case pr.note.Moved:
		pr.drop = "somebody has moved it beyond all that the primary ever reported"
	case !positioned:
		pr.drop = "it has no position"
	case !m.WALok && (pr.best < 0 || pr.t.kept[pr.best].Position.Restart <= at.Restart):
		pr.drop = "the WAL that it begins with is gone there, and nothing brings that back"
	}
}

func (c *cycle) dropStep(node string) {
	if c.still() != "" {
		return
	}
	var names []string
	for _, s := range sortedSlots(c.o.Nodes[node].Value.Slots) {
		if c.removable(s) && s.ActivePID == 0 && c.slotOn(c.lead.primary, s.Name) == nil && c.m.Slots[s.Name].AbsentReads >= absentReads {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		c.step(Step{ID: "drop/" + node, Stage: StageDrop, Node: node, Kind: StepDrop, Names: names,
			Why: "the primary has no such slot in two successive reads"})
	}
	names = nil
	var leftovers []string
	for _, pr := range c.mine(node) {
		switch {
		case pr.drop != "" && pr.server:
			leftovers = append(leftovers, pr.t.slot.Name)
		case pr.drop != "":
			names = append(names, pr.t.slot.Name)
		}
	}
	if len(leftovers) > 0 {
		c.step(Step{ID: "drop/" + node + "/leftover", Stage: StageDrop, Node: node, Kind: StepDrop, Names: leftovers,
			Why: "the server's own worker keeps these slots there, and a slot of that name that it did not make stops it"})
	}
	names = append(names, c.unselectedGaps(node)...)
	if len(names) > 0 {
		c.step(Step{ID: "drop/" + node + "/unproven", Stage: StageDrop, Node: node, Kind: StepDrop, Names: names,
			Why: "an unproven mirror must not exist; it is made again from a new read"})
	}
	c.dropUsedHold(node)
}

// dropUsedHold: a standby's hold that somebody has used is not mended within its
// generation. It has proven nothing yet, so it is dropped and made anew.
func (c *cycle) dropUsedHold(node string) {
	own := c.holdOn(node)
	if own.state == holdGone && own.generation >= c.m.Generation && c.slotOn(node, cluster.HoldName).ActivePID == 0 {
		c.step(Step{ID: "drop/" + node + "/hold", Stage: StageDrop, Node: node, Kind: StepDrop, Names: []string{cluster.HoldName},
			Why: "somebody has used this hold: " + own.why})
	}
}

// isUnproven: a slot of ours on a new primary that no consumer should use. Of a
// mirror only what was known before the promotion is evidence, in the first read
// of the new timeline, and that the file is gone which its proof rests on: a decoder
// leaves one wherever it moves restart_lsn to. Later a slot that still carries the marker of a mirror is
// one that could not be marked as an original yet.
func (c *cycle) isUnproven(s cluster.Slot) bool {
	if !c.ours(s) || s.Synced || s.Marker.Timeline >= c.m.Timeline {
		return false
	}
	if s.Marker.Kind == cluster.MarkOriginal {
		return s.Marker.Timeline != parentTimeline(c.lead.read.Node)
	}
	if c.m.Slots[s.Name].Unproven {
		return true
	}
	if !c.successor && !c.fresh {
		return false
	}
	floor := max(c.m.Continuous, c.m.Standbys[c.lead.primary].MinGeneration)
	if seen := c.seenGeneration(); seen > c.m.Generation {
		floor = seen // nothing is known of how this one came about
	}
	parent := parentTimeline(c.lead.read.Node)
	if c.m.mixes(c.lead.primary, parent, forkOf(c.lead.read.Node, parent)) {
		return true
	}
	last := c.m.Pairs[Pair{Slot: s.Name, Standby: c.lead.primary}]
	moved := last.Moved || last.Used && s.ActivePID == 0
	return s.Marker.Generation < floor || last.Verdict.Reason == ReasonProtectionGap || moved || fileIsGone(s) ||
		ofEarlierSlot(s, c.m.Slots[s.Name]) || c.unseenSince(s.Marker.Timeline)
}

// ofEarlierSlot: the slot that was last seen under that name was made after the one
// that this is a mirror of, and may have begun further back, as the copy of another.
// What the ledger shows may be the older of the two.
func ofEarlierSlot(mirror cluster.Slot, note SlotNote) bool {
	source := mirror.Marker.Source
	if source.Same(note.Incarnation) || contains(note.Ancestors, source) {
		return false
	}
	return source.Birth.V.Before(note.Incarnation.Birth.V)
}

// fileIsGone: a later file counts as long as decoding has not come by it.
func fileIsGone(s cluster.Slot) bool {
	passed := s.Marker.Way == laterFile && s.Marker.Witness.Or(0) < s.Restart.Or(0)
	return snapshotGone(s) && !passed
}

// unseenSince: between the timeline on which a mirror was proven last and the
// present one there was a primary that this leader and its ledger never saw:
// whether it held anything for the mirrors of others is not known (D18).
func (c *cycle) unseenSince(proven cluster.Timeline) bool {
	parent := parentTimeline(c.lead.read.Node)
	return proven < parent && c.ledTimeline != parent
}

// noteUnproven has such a mirror dropped, or says that it is in use. A former
// original is its owner's: it is only told of.
func (c *cycle) noteUnproven(s cluster.Slot) {
	note := c.m.Slots[s.Name]
	note.Unproven, note.AbsentReads = true, 0
	note.Database, note.Plugin = s.Database, s.Plugin
	c.m.Slots[s.Name] = note
	cond := Condition{Code: CondProtectionGap, Subject: s.Name, Severity: Critical}
	switch {
	case s.Marker.Kind == cluster.MarkOriginal:
		cond.Message = fmt.Sprintf("slot %s on the new primary %s was left there on timeline %d, when it was the primary before: nothing has held its catalog rows since", s.Name, c.lead.primary, s.Marker.Timeline)
		cond.Hint = "what it decodes may lack columns or rows: drop it, create it again and let its consumer start anew"
	case s.ActivePID != 0:
		cond.Message = fmt.Sprintf("slot %s on the new primary %s was not protected before the promotion, and process %d is using it", s.Name, c.lead.primary, s.ActivePID)
		cond.Hint = "stop its consumer: what it decodes may lack columns or rows; it is dropped as soon as it is free"
	default:
		c.unproven = append(c.unproven, s.Name)
		return
	}
	c.condition(cond)
}

func (c *cycle) dropOnPrimary() {
	if len(c.unproven) == 0 {
		return
	}
	c.step(Step{ID: "drop/" + c.lead.primary, Stage: StageDrop, Node: c.lead.primary, Kind: StepDrop, Names: c.unproven,
		Why: "these mirrors were not protected when the node was promoted: a consumer must not find them"})
}
