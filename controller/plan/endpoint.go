package plan

import "fmt"

func endpointRule(c *cycle, pr *pair) *finding {
	if pr.read {
		return nil
	}
	switch {
	case pr.fact.Reason == ReasonExtensionUnavailable:
		return &finding{Unsafe, ReasonExtensionUnavailable, sentence("the extension cannot be used on "+pr.node, pr.fact.Err),
			orHint(pr.fact.Hint, "install slotkeeper's library there, and run CREATE EXTENSION slotkeeper on the primary")}
	case pr.fact.OK() && pr.fact.Value.Node.SystemID == c.lead.systemID:
		return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("%s is not in recovery although %s is the primary", pr.node, c.lead.primary), "make it a standby of the primary"}
	case pr.fact.OK():
		return &finding{Unsafe, ReasonWrongEndpoint, fmt.Sprintf("the address of %s leads to system %s, not to the cluster's %s", pr.node, pr.fact.Value.Node.SystemID, c.lead.systemID),
			"mend the member's conninfo; nothing is ever written there"}
	}
	return &finding{Unsafe, ReasonWrongEndpoint, sentence("the address of "+pr.node+" leads to another server", pr.fact.Err),
		orHint(pr.fact.Hint, "mend the member's conninfo; nothing is ever written there")}
}
