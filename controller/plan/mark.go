package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// markStep marks the originals: after a demotion they are known as ours, and
// after a promotion a mirror becomes an ordinary slot. The marker tells the
// timeline on which they were originals last, so it is renewed with that. A
// failover slot is marked too: after a demotion it is a leftover that stops the
// server's own worker, and only a marked one is ours to remove. One that this
// worker made needs no marker: it knows its own again.
func (c *cycle) markStep() {
	s := Step{ID: "mark/" + c.lead.primary, Stage: StageMark, Node: c.lead.primary, Kind: StepMark,
		Why: "these slots are managed and not marked as originals of this timeline"}
	for _, t := range c.slots {
		unmarked := t.slot.Marker == nil
		older := c.ours(t.slot) && (t.slot.Marker.Kind == cluster.MarkMirror || t.slot.Marker.Timeline != c.m.Timeline)
		if (unmarked || older) && t.slot.Invalidated == "" && !t.slot.Synced && !c.m.Aside[t.slot.Name] {
			s.Names = append(s.Names, t.slot.Name)
			s.Incarnations = append(s.Incarnations, t.slot.Incarnation)
		}
	}
	if len(s.Names) > 0 {
		c.step(s)
	}
}
