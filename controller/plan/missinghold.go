package plan

import (
	"fmt"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// holdMissing: the primary's hold was there, and protects nothing now.
func (c *cycle) holdMissing() {
	if !c.hold.broken() || len(c.slots) == 0 || c.m.HoldGen == 0 {
		return
	}
	hint := "it is made again by itself; find out who dropped or used " + cluster.HoldName
	if c.hold.state == holdForeign {
		hint = c.dropHoldHint()
	}
	c.condition(Condition{Code: CondHoldMissing, Subject: c.lead.primary, Severity: Critical,
		Message: fmt.Sprintf("the hold on %s protects nothing: %s", c.lead.primary, c.hold.why), Hint: hint})
}

// dropHoldHint: a slot in the hold's place without our marker, made by hand or
// copied back from a disk, is nothing that is ever touched.
func (c *cycle) dropHoldHint() string {
	return fmt.Sprintf("it is not touched, and the hold cannot be made in its place: drop it on %s: SELECT pg_drop_replication_slot(%s)", c.lead.primary, quoted(cluster.HoldName))
}

// mended puts into the past what this cycle has put right: the verdicts beside
// it, of the same cycle, already say so.
func (s *settling) mended(cond *Condition) {
	if cond.Code != CondHoldMissing || s.m.HoldGen != s.m.Generation || s.gap {
		return
	}
	cond.Severity = Warning
	cond.Message = strings.Replace(cond.Message, "protects nothing", "protected nothing, and has been made again", 1)
	cond.Hint = "find out who dropped or used " + cluster.HoldName
}
