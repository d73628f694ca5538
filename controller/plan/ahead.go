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
	return nil
}
