package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// orphanAfter: a standby that restarts, or is being rebuilt, is no orphan's.
const orphanAfter = 5 * time.Minute

// noteOrphans counts for how long nobody has streamed through a physical slot of
// the primary that no member names. Where some member was never read, which
// slot is whose is not known.
func (c *cycle) noteOrphans() {
	since := map[string]time.Time{}
	for _, s := range c.lead.read.Slots {
		if !c.isOrphan(s) {
			continue
		}
		since[s.Name] = c.readAt
		if before, ok := c.m.Orphans[s.Name]; ok {
			since[s.Name] = before
		}
	}
	c.m.Orphans = since
}

func (c *cycle) isOrphan(s cluster.Slot) bool {
	if s.Kind != cluster.Physical || s.Temporary || isOwnName(s.Name) || c.ours(s) || s.ActivePID != 0 {
		return false
	}
	if s.Restart.Or(0) == 0 && !s.Xmin.OK && !s.CatalogXmin.OK {
		return false // it pins nothing
	}
	for name, note := range c.m.Standbys {
		if c.m.Forgotten[name] {
			continue
		}
		if !note.Known || note.StreamSlot == s.Name {
			return false
		}
	}
	return true
}

// orphanSlots tells of each, with what it keeps.
func (c *cycle) orphanSlots() {
	for _, s := range sortedSlots(c.lead.read.Slots) {
		since, ok := c.m.Orphans[s.Name]
		if !ok || c.now.Sub(since) < orphanAfter {
			continue
		}
		c.condition(Condition{Code: CondOrphanPhysicalSlot, Subject: s.Name, Severity: Warning,
			Message: fmt.Sprintf("nobody has streamed through the physical slot %s on %s for %s, and no member names it as its primary_slot_name: it keeps %s",
				s.Name, c.lead.primary, c.now.Sub(since).Round(time.Second), c.keptText(s)),
			Hint: fmt.Sprintf("if the standby behind it is gone for good: SELECT pg_drop_replication_slot(%s)", quoted(s.Name))})
	}
}

func (c *cycle) keptText(s cluster.Slot) string {
	var parts []string
	if r := s.Restart.Or(0); r != 0 {
		parts = append(parts, fmt.Sprintf("%d bytes of WAL", uint64(max(c.lead.read.Node.Insert.Or(0), r)-r)))
	}
	for _, x := range []cluster.Opt[cluster.XID]{s.Xmin, s.CatalogXmin} {
		if text := fmt.Sprintf("rows from transaction %s on", x.V); x.OK && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return joined(parts)
}
