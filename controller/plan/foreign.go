package plan

import "fmt"

// foreignFences: nodes where a controller of another etcd or scope has put its
// fence, or one of this etcd before it was restored.
func (c *cycle) foreignFences() {
	for _, name := range append([]string{c.lead.primary}, c.standbys...) {
		if _, ok := c.readable(name); !ok && name != c.lead.primary {
			continue
		}
		if why := c.fenceTrouble(name); why != "" {
			cond := foreign(name, why)
			cond.Hint = c.refusedHint(name)
			c.condition(cond)
		}
	}
}

func foreign(node, why string) Condition {
	return Condition{Code: CondForeignEpoch, Subject: node, Severity: Critical,
		Message: sentence(fmt.Sprintf("%s refuses this controller", node), why), Hint: foreignHint}
}

// foreignHint: the fence outlives its etcd, a data_dir that was removed included.
const foreignHint = "another slotkeeper, or one with another etcd, manages this node: stop it, or uninstall it; " +
	"where that etcd is gone for good, moved, or restored, and nobody leads by it any more, run this controller with --take-over"

// scopeHint: what another scope has made is never taken over.
const scopeHint = "correct scope in the configuration; where this scope is meant, stop the other's controller, then slotkeeper uninstall with its configuration"

// refusedHint says how a node that refuses this controller can be had.
func (c *cycle) refusedHint(name string) string {
	if f := c.o.Nodes[name].Value.Node.Fence; f.OK && f.V.Scope != c.p.Scope {
		return scopeHint
	}
	return foreignHint
}
