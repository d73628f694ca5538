package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// pinnedXmin: a slot of the primary, whoever made it, that keeps vacuum from
// rows that are very old. The hold has a rule of its own, and what a standby's
// physical slot only repeats of it is not told twice.
func (c *cycle) pinnedXmin() {
	for _, s := range sortedSlots(c.lead.read.Slots) {
		what, x := "xmin", s.Xmin.Or(0)
		if catalog := s.CatalogXmin.Or(0); !x.NotAfter(catalog) && catalog.Normal() && !c.repeatsHold(s) {
			what, x = "catalog_xmin", catalog
		}
		age, old := c.tooOld(x)
		if isOwnName(s.Name) || !old {
			continue
		}
		c.condition(Condition{Code: CondXminPinned, Subject: s.Name, Severity: Warning,
			Message: fmt.Sprintf("slot %s on %s pins %s %s, %d transactions old, %s: rows that died since then cannot be vacuumed",
				s.Name, c.lead.primary, what, x, age, c.freezeText()),
			Hint: pinnedHint(s)})
	}
}

// repeatsHold: a standby's feedback carries what its own slots pin, mirrors and
// hold among them.
func (c *cycle) repeatsHold(s cluster.Slot) bool {
	return s.Kind == cluster.Physical && c.hold.pins(s.CatalogXmin.Or(0))
}

func pinnedHint(s cluster.Slot) string {
	if s.Kind == cluster.Logical {
		return "let its consumer confirm, or drop the slot if nobody needs it"
	}
	return "a long query on the standby behind it, or a standby that is gone: end the query, or drop the slot if nobody needs it"
}
