package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ageShare: what pins rows of more than this part of autovacuum_freeze_max_age
// is no delay of a mirror any more. Nothing in PostgreSQL bounds it.
const ageShare = 10

// tooOld gives the age of x in transactions on the primary, and whether that
// is worth saying.
func (c *cycle) tooOld(x cluster.XID) (age int64, old bool) {
	n := c.lead.read.Node
	age = x.Age(n.NextXID)
	return age, n.FreezeMaxAge > 0 && age > n.FreezeMaxAge/ageShare
}

func (c *cycle) freezeText() string {
	return fmt.Sprintf("more than %d %% of autovacuum_freeze_max_age (%d)", 100/ageShare, c.lead.read.Node.FreezeMaxAge)
}

// holdAge: who keeps the holds back, and how far back the primary's is. Where a
// selected slot itself pins as much, xmin_pinned tells of that one.
func (c *cycle) holdAge() {
	for _, name := range slices.Sorted(maps.Keys(c.m.Standbys)) {
		c.memberAway(name, c.m.Standbys[name])
	}
	age, old := c.tooOld(c.hold.xmin)
	if c.hold.state != holdValid || !old || c.oldestSlot().NotAfter(c.hold.xmin) {
		return
	}
	c.condition(Condition{Code: CondHoldAge, Subject: c.lead.primary, Severity: Warning,
		Message: fmt.Sprintf("%s on %s is %d transactions old, %s: dead catalog rows stay in all databases", cluster.HoldName, c.lead.primary, age, c.freezeText()),
		Hint:    "see which standby is away or far behind, and bring it back; slotkeeper forget gives one up that is gone for good"})
}

// oldestSlot is the oldest catalog_xmin of the selected slots themselves.
func (c *cycle) oldestSlot() cluster.XID {
	var xs []cluster.XID
	for _, t := range c.slots {
		xs = append(xs, t.slot.CatalogXmin.Or(0))
	}
	return cluster.OldestXID(xs...).V
}

// memberAway: one condition for a member that is away, from half of the time on
// after which it is given up.
func (c *cycle) memberAway(name string, note NodeNote) {
	if note.AwaySince.IsZero() || !c.holdsBack(note) || note.GivenUp && c.m.Forgotten[name] {
		return
	}
	away := c.now.Sub(note.AwaySince).Round(time.Second)
	switch {
	case note.GivenUp:
		c.condition(Condition{Code: CondHoldAge, Subject: name, Severity: Warning,
			Message: fmt.Sprintf("%s has been away for %s and is given up: the holds no longer wait for it", name, away),
			Hint:    "its mirrors are made anew when it comes back"})
	case away >= c.p.MaxHoldAge/2:
		c.condition(Condition{Code: CondHoldAge, Subject: name, Severity: Warning,
			Message: fmt.Sprintf("%s has been away for %s and keeps the holds back: dead catalog rows stay in all databases", name, away),
			Hint:    fmt.Sprintf("bring it back; it is given up when it has been away for %s (protection.max_hold_age), or at once by slotkeeper forget %s", c.p.MaxHoldAge, name)})
	}
}
