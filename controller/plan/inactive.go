package plan

import (
	"fmt"
	"time"
)

const (
	// A consumer that was at work within usedWithin before a promotion and has
	// not come to the new primary after inactiveAfter has lost its way.
	usedWithin    = 10 * time.Minute
	inactiveAfter = 30 * time.Second
)

// noteUse remembers when somebody was last seen to use the slot: to have it, or
// to have moved it. Whoever makes a slot has it too, until it has a position.
func (t *tracked) noteUse(at time.Time, before SlotNote) {
	moved := t.located && before.Last.V.Confirmed < t.pos.Confirmed
	if before.Last.OK && (t.slot.ActivePID != 0 || moved) {
		t.note.UsedAt = at
	}
}

// inactiveSlots: slots that were in use before the promotion and that nobody has
// come for since.
func (c *cycle) inactiveSlots() {
	promoted := c.m.PromotedAt
	if promoted.IsZero() || c.now.Sub(promoted) < inactiveAfter {
		return
	}
	for _, t := range c.slots {
		used := t.note.UsedAt
		if used.IsZero() || !used.Before(promoted) || promoted.Sub(used) > usedWithin {
			continue
		}
		c.condition(Condition{Code: CondSlotInactive, Subject: t.slot.Name, Severity: Warning,
			Message: fmt.Sprintf("nobody has used slot %s since %s was promoted %s ago; its consumer was at work until then",
				t.slot.Name, c.lead.primary, c.now.Sub(promoted).Round(time.Second)),
			Hint: "see that the consumer connects to the new primary; until it does the slot keeps WAL and catalog rows"})
	}
}
