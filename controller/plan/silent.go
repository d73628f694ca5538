package plan

import (
	"fmt"
	"time"
)

// freshen takes answers that were asked for too long ago for none: a read that
// has hung says what was, not what is.
func (c *cycle) freshen() {
	nodes := make(map[string]Fact[NodeRead], len(c.o.Nodes))
	for name, fact := range c.o.Nodes {
		if age := c.o.Begun.Sub(fact.At); fact.OK() && age > c.p.StaleAfter {
			fact.Err, fact.Reason = fmt.Sprintf("its answer is %s old", age.Round(time.Second)), ReasonStale
		}
		nodes[name] = fact
	}
	c.o.Nodes = nodes
}

// silentRule: nothing is known of a standby that gives no answer.
func silentRule(_ *cycle, pr *pair) *finding {
	switch pr.fact.Reason {
	case ReasonExtensionUnavailable, ReasonWrongEndpoint:
		return nil
	}
	if pr.fact.OK() {
		return nil
	}
	reason := pr.fact.Reason
	if reason != ReasonStale && reason != ReasonNoPrivilege {
		reason = ReasonUnreachable
	}
	hint := "bring the node back, or look at its address; its mirrors stay as they are"
	if reason == ReasonNoPrivilege {
		hint = "grant the controller's role what the extension's installation says"
	}
	return &finding{Unknown, reason, sentence(fmt.Sprintf("%s gives no answer about %s", pr.node, pr.t.slot.Name), pr.fact.Err), orHint(pr.fact.Hint, hint)}
}
