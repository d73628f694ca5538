package plan

import "fmt"

func holdRule(c *cycle, pr *pair) *finding {
	if pr.prot != protUnsettled {
		return nil
	}
	return &finding{Unsafe, ReasonHoldNotSaved, fmt.Sprintf("the hold on %s does not count, so %s on %s is not protected: %s", c.lead.primary, pr.t.slot.Name, pr.node, c.hold.why),
		"it is saved again; look at the primary's log and free space if this stays"}
}
