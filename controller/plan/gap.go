package plan

import (
	"fmt"
	"slices"
)

func gapRule(c *cycle, pr *pair) *finding {
	hint := "it is held and stamped again in this cycle"
	if c.hold.state == holdForeign {
		hint = c.dropHoldHint()
	}
	switch pr.prot {
	case protGap:
		return &finding{Unsafe, ReasonProtectionGap, fmt.Sprintf("the catalog rows of %s on %s (catalog_xmin %s, generation %d) were not held throughout: %s",
			pr.t.slot.Name, pr.node, pr.mirror.CatalogXmin.Or(0), pr.mirror.Marker.Generation, c.gapCause(pr)), "it is dropped and made again from a new read"}
	case protWitnessed:
		return &finding{Unsafe, ReasonProtectionGap, fmt.Sprintf("nothing holds the catalog rows of %s on %s but the slot itself: %s", pr.t.slot.Name, pr.node, c.gapCause(pr)),
			hint}
	}
	return nil
}

func (c *cycle) gapCause(pr *pair) string {
	if c.hold.why != "" {
		return fmt.Sprintf("the hold on %s: %s", c.lead.primary, c.hold.why)
	}
	if slices.Contains(c.endangered, pr.node) {
		return fmt.Sprintf("sessions on %s are older than its hold, and outlived its promotion: they may remove rows that mirrors on %s need", c.lead.primary, pr.node)
	}
	if !c.hold.pins(pr.mirror.CatalogXmin.Or(0)) {
		return fmt.Sprintf("the hold on %s pins from %s only", c.lead.primary, c.hold.xmin)
	}
	return fmt.Sprintf("the holds are of generation %d", c.m.Generation)
}
