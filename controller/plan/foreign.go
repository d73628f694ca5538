package plan

import "fmt"

// foreignFences: nodes where a controller of another etcd or scope has put its fence.
func (c *cycle) foreignFences() {
	if n := c.lead.read.Node; c.foreignFence(n) {
		c.condition(foreign(c.lead.primary, c.fenceTrouble(n)))
	}
	for _, name := range c.standbys {
		if read, ok := c.readable(name); ok && c.foreignFence(read.Node) {
			c.condition(foreign(name, c.fenceTrouble(read.Node)))
		}
	}
}

func foreign(node, why string) Condition {
	return Condition{Code: CondForeignEpoch, Subject: node, Severity: Critical,
		Message: sentence(fmt.Sprintf("%s refuses this controller", node), why), Hint: foreignHint}
}

// foreignHint: the fence outlives its etcd, a data_dir that was removed included.
const foreignHint = "another slotkeeper, or one with another etcd, manages this node: stop it, or uninstall it; " +
	"only where that etcd is gone for good and nobody leads by it any more, take the fence away: SELECT slotkeeper.remove_fence(fence) FROM slotkeeper.node() on this node"
