package plan

import "fmt"

// aheadRule: a mirror of ours stands only where the slot has been.
func aheadRule(c *cycle, pr *pair) *finding {
	if pr.mirror == nil || c.replaces(pr) {
		return nil
	}
	highest := max(pr.t.note.HighestF, pr.t.note.Before)
	if at := pr.mirror.Confirmed.Or(0); highest != 0 && at > highest {
		return &finding{Unsafe, ReasonMirrorAhead, fmt.Sprintf("the mirror of %s on %s is at %s, beyond all that the primary ever reported (%s)", pr.t.slot.Name, pr.node, at, highest),
			"something has moved it: a consumer that goes on from there would miss rows; drop it and it is made again"}
	}
	if beyondPrimary(*pr.mirror, c.lead.read.Node) {
		return &finding{Unsafe, ReasonMirrorAhead, fmt.Sprintf("the mirror of %s on %s is at %s, the WAL of the primary %s ends at %s of the same timeline: one of the two nodes was put back to an older state",
			pr.t.slot.Name, pr.node, lsnText(pr.mirror.Confirmed), c.lead.primary, c.lead.read.Node.Insert.V), "find out which of the two is to stay, and make the other anew from it"}
	}
	return nil
}
