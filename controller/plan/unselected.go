package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
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

// unselectedGaps are those among them whose catalog rows are not held any more, and
// those of an earlier slot: after a promotion a consumer would decode from them all
// the same, and the later slot may have begun further back.
func (c *cycle) unselectedGaps(node string) []string {
	var names []string
	for _, s := range sortedSlots(c.o.Nodes[node].Value.Slots) {
		of := c.slotOn(c.lead.primary, s.Name)
		if of == nil || c.p.Selected(*of) || !c.isMirror(s) || !c.removable(s) || s.ActivePID != 0 || c.m.Aside[s.Name] {
			continue
		}
		if c.ofReplacedSlot(s, *of) {
			names = append(names, s.Name)
			c.condition(Condition{Code: CondMirrorUnselected, Subject: s.Name + "/" + node, Severity: Warning,
				Message: fmt.Sprintf("the mirror of %s on %s, which slots.include and slots.exclude do not select, is of an earlier slot, which was dropped and created again, and is dropped", s.Name, node),
				Hint:    "select it again if a consumer should find it after a failover"})
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

// ofReplacedSlot: the mirror was made from a slot of this very primary, and the one
// that is there now is another. Of what was made on an earlier timeline that is not
// known: nothing is remembered of slots that are not selected.
func (c *cycle) ofReplacedSlot(mirror, now cluster.Slot) bool {
	source := mirror.Marker.Source
	return mirror.Marker.Timeline == c.m.Timeline && source.Birth.OK && now.Incarnation.Birth.OK && !source.Same(now.Incarnation)
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
