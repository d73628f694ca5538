package plan

import (
	"fmt"
	"maps"
	"slices"
)

// missingSlots: slots of the primary before this one that are not on it, or that
// this cycle drops there. They are never made again at the current position.
func (c *cycle) missingSlots() {
	for _, name := range slices.Sorted(maps.Keys(c.m.Slots)) {
		note := c.m.Slots[name]
		text := fmt.Sprintf("slot %s did not come through the promotion to %s (timeline %d)", name, c.lead.primary, c.m.Timeline)
		switch {
		case slices.Contains(c.unproven, name) && c.p.wants(name, note.Database, note.Plugin):
			text += ", for its mirror there was not protected and is dropped"
		case note.LostWith != c.m.Timeline || note.AbsentReads == 0:
			continue
		}
		c.condition(Condition{Code: CondSlotMissing, Subject: name, Severity: Critical,
			Message: text + ": it was last seen at " + lastText(note),
			Hint:    "it is never made again at the current position: its consumer must know that rows are missing, and start anew"})
	}
}
