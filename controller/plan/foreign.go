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
			c.condition(foreign(name, why))
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
