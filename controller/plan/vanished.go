package plan

import "fmt"

// CondMirrorVanished: a mirror is gone, and slotkeeper did not drop it.
const CondMirrorVanished = "mirror_vanished"

// vanishedMirrors tells of each mirror that was there at the last read and that
// somebody else has dropped since: Patroni without the rule, or a person. It is
// made again by itself.
func (c *cycle) vanishedMirrors() {
	if c.successor {
		return
	}
	for _, pr := range c.pairs {
		if !pr.read || pr.server || pr.there != nil || pr.t.recreated || c.m.Aside[pr.t.slot.Name] || !pr.note.Verdict.Mirror.OK || pr.note.Dropped || c.firsts[pr.node] {
			continue
		}
		hint := "find out who dropped it (ALTER DATABASE ... SET TABLESPACE does, on every standby); it is made again by itself"
		if c.drops(pr.t.slot) != "" {
			hint = coverHint
		}
		c.condition(Condition{Code: CondMirrorVanished, Subject: pr.t.slot.Name + "/" + pr.node, Severity: Warning,
			Message: fmt.Sprintf("the mirror of %s on %s is gone, and slotkeeper did not drop it", pr.t.slot.Name, pr.node), Hint: hint})
	}
}
