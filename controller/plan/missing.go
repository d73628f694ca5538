package plan

import (
	"fmt"
	"maps"
	"slices"
)

const missingHint = "it is never made again at the current position: its consumer must know that rows are missing, and start anew"

// missingSlots: slots of the primary before this one that are not on it, or that
// this cycle drops there. They are never made again at the current position.
func (c *cycle) missingSlots() {
	for _, name := range slices.Sorted(maps.Keys(c.m.Slots)) {
		note := c.m.Slots[name]
		if slices.Contains(c.unproven, name) && c.p.wants(name, note.Database, note.Plugin) {
			c.condition(Condition{Code: CondSlotMissing, Subject: name, Severity: Critical,
				Message: fmt.Sprintf("slot %s on the new primary %s was not protected before the promotion, and is dropped", name, c.lead.primary),
				Hint:    missingHint})
			continue
		}
		if note.LostWith != c.m.Timeline || note.AbsentReads == 0 {
			continue
		}
		c.condition(Condition{Code: CondSlotMissing, Subject: name, Severity: Critical,
			Message: fmt.Sprintf("slot %s did not come through the promotion to %s (timeline %d): it was last seen at %s", name, c.lead.primary, c.m.Timeline, lastText(note)),
			Hint:    missingHint})
	}
}
