package plan

import (
	"fmt"
	"slices"
	"strings"
)

// unselected tells of mirrors that nothing moves any more and that keep WAL on
// their standby and catalog rows everywhere: those of slots that the
// configuration once selected. They are not dropped: it may be a slip.
func (c *cycle) unselected() {
	for _, node := range c.standbys {
		read, _ := c.readable(node)
		var names []string
		for _, s := range read.Slots {
			if of := c.slotOn(c.lead.primary, s.Name); c.isMirror(s) && of != nil && !c.p.Selected(*of) {
				names = append(names, s.Name)
			}
		}
		if len(names) > 0 {
			c.condition(unselectedOn(node, names))
		}
	}
}

// unselectedGaps are those among them whose catalog rows are not held any more:
// after a promotion a consumer would decode from them all the same.
func (c *cycle) unselectedGaps(node string) []string {
	var names []string
	for _, s := range sortedSlots(c.o.Nodes[node].Value.Slots) {
		of := c.slotOn(c.lead.primary, s.Name)
		if of == nil || c.p.Selected(*of) || !c.isMirror(s) || !c.removable(s) || s.ActivePID != 0 || c.m.Aside[s.Name] {
			continue
		}
		if c.protectionOf(&tracked{slot: *of}, node, s) != protGap {
			continue
		}
		names = append(names, s.Name)
		c.condition(Condition{Code: CondProtectionGap, Subject: s.Name + "/" + node, Severity: Warning,
			Message: fmt.Sprintf("the mirror of %s on %s, which slots.include and slots.exclude do not select, was not held throughout, and is dropped", s.Name, node),
			Hint:    "select it again if a consumer should find it after a failover"})
	}
	return names
}

func unselectedOn(node string, names []string) Condition {
	slices.Sort(names)
	shown := strings.Join(names[:min(len(names), 5)], ", ")
	if more := len(names) - 5; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return Condition{Code: CondMirrorUnselected, Subject: node, Severity: Warning,
		Message: fmt.Sprintf("%s has mirrors of slots that slots.include and slots.exclude do not select: %s; they are not moved any more, and keep WAL there and catalog rows on every node", node, shown),
		Hint:    fmt.Sprintf("select them again, or drop them on %s with pg_drop_replication_slot", node)}
}
