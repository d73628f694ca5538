package plan

import "fmt"

// physicalSlots looks at the slots through which the standbys stream: never
// ours to touch. A standby behind another one has its slot there.
func (c *cycle) physicalSlots() {
	for _, name := range c.standbys {
		if read, ok := c.readable(name); ok && read.Node.PrimarySlotName != "" {
			c.physicalSlot(name, read.Node.PrimarySlotName)
		}
	}
}

func (c *cycle) physicalSlot(standby, slot string) {
	holder := c.lead.primary
	s := c.slotOn(holder, slot)
	for _, other := range c.standbys {
		if _, ok := c.readable(other); s == nil && ok && other != standby {
			holder, s = other, c.slotOn(other, slot)
		}
	}
	switch {
	case s == nil:
		c.condition(Condition{Code: CondPhysicalSlotMissing, Subject: standby, Severity: Warning,
			Message: fmt.Sprintf("the primary %s has no physical slot %s, which primary_slot_name of %s names", c.lead.primary, slot, standby),
			Hint:    "create it, or the standby cannot stream"})
	case s.Invalidated != "":
		c.condition(Condition{Code: CondPhysicalSlotInvalidated, Subject: standby, Severity: Warning,
			Message: fmt.Sprintf("the physical slot %s of %s on %s is invalidated (%s)", slot, standby, holder, s.Invalidated),
			Hint:    "the standby streams only while the WAL is still there by chance; make the slot anew"})
	}
}
