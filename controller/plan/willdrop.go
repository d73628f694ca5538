package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// CondPatroniWillDrop: Patroni would drop a slot of ours, or one that is managed.
const CondPatroniWillDrop = "patroni_will_drop"

// coverHint says what covers every slot of ours. An entry without any field
// would do as well, and then Patroni never removes the slot of a member that left.
const coverHint = "ignore_slots in Patroni's dynamic configuration must hold {type: logical}, {name: slotkeeper_hold, type: physical} and {name: slotkeeper_wal, type: physical}: `slotkeeper doctor --fix` writes it"

// PatroniDrops says why Patroni would drop such a slot of some node: when it
// starts, when its node changes role, when a pause ends; "" where it would not. It
// drops what it does not know and no entry of ignore_slots matches, and, whatever
// ignore_slots says, what it knows under that name as a slot of another kind.
func PatroniDrops(m *cluster.Manager, s cluster.Slot) string {
	r := m.Slots
	if s.Failover && r.SparesFailover {
		return ""
	}
	if members, taken := r.Members[s.Name]; taken && m.UseSlots {
		return fmt.Sprintf("%s has that name for the physical slot of %s", "Patroni", orAway(members))
	}
	permanent, listed := r.Permanent[s.Name]
	if listed = listed && m.UseSlots && permanent.Kind != ""; listed {
		return permanentDrops(permanent, s)
	}
	if r.Unusable != "" {
		return r.Unusable
	}
	for _, matcher := range r.Ignore {
		if matcher.Unusable != "" {
			return matcher.Unusable
		}
		if matches(matcher, s) {
			return ""
		}
	}
	if len(r.Ignore) == 0 && r.Misplaced {
		return "ignore_slots stands under postgresql, where Patroni does not look"
	}
	if len(r.Ignore) == 0 {
		return "its dynamic configuration has no ignore_slots"
	}
	return fmt.Sprintf("none of %d entries of its ignore_slots matches", len(r.Ignore))
}

// permanentDrops: what stands in slots is Patroni's own where it is the same
// slot, and what is not the same is dropped and made anew.
func permanentDrops(p cluster.PermanentSlot, s cluster.Slot) string {
	switch {
	case ownHold(s.Name):
		// It would hold WAL by it, and move it: that is no hold any more.
		return "its slots list that name, so that Patroni itself keeps it"
	case p.Kind != s.Kind:
		return fmt.Sprintf("its slots list that name as a %s slot", p.Kind)
	case s.Kind == cluster.Logical && (p.Database != s.Database || p.Plugin != s.Plugin):
		return fmt.Sprintf("its slots list that name with database %s and plugin %s", orUnknown(p.Database), orUnknown(p.Plugin))
	}
	return ""
}

// matches is Patroni's equality: a physical slot has neither database nor plugin.
func matches(m cluster.SlotMatcher, s cluster.Slot) bool {
	logical := s.Kind == cluster.Logical
	return (!m.Name.OK || m.Name.V == s.Name) &&
		(!m.Type.OK || m.Type.V == string(s.Kind)) &&
		(!m.Database.OK || logical && m.Database.V == s.Database) &&
		(!m.Plugin.OK || logical && m.Plugin.V == s.Plugin)
}

func orAway(members []string) string {
	if len(members) == 0 {
		return "a member that is away"
	}
	return "member " + strings.Join(members, " and ")
}

func ownHold(name string) bool { return name == cluster.HoldName || name == cluster.WALHoldName }

// OwnSlots are the physical slots that slotkeeper makes on nodes.
func OwnSlots() []cluster.Slot {
	return []cluster.Slot{
		{Name: cluster.HoldName, Kind: cluster.Physical},
		{Name: cluster.WALHoldName, Kind: cluster.Physical},
	}
}

// drops gives why Patroni would drop a slot; "" also where there is no Patroni.
func (c *cycle) drops(s cluster.Slot) string {
	if m := c.o.Topology.Value.Manager; m != nil {
		return PatroniDrops(m, s)
	}
	return ""
}

// willDropRule: at its role change a promoted node would lose the mirror, or the
// hold that protects those of the others.
func willDropRule(c *cycle, pr *pair) *finding {
	for _, s := range append([]cluster.Slot{pr.t.slot}, OwnSlots()[:1]...) {
		if why := c.drops(s); why != "" {
			return &finding{Unsafe, ReasonPatroniWillDrop, fmt.Sprintf("Patroni drops slot %s on %s when it starts, when the role changes or when a pause ends: %s", s.Name, pr.node, why), DropHint(c.o.Topology.Value.Manager, s)}
		}
	}
	return nil
}

// DropHint says what keeps Patroni from dropping a slot.
func DropHint(m *cluster.Manager, s cluster.Slot) string {
	if members, taken := m.Slots.Members[s.Name]; taken {
		return fmt.Sprintf("give the slot, or %s, another name", orAway(members))
	}
	if _, listed := m.Slots.Permanent[s.Name]; listed {
		return "take it out of slots in Patroni's dynamic configuration"
	}
	return coverHint
}

// Ignorable reports whether an entry of ignore_slots would do.
func Ignorable(m *cluster.Manager, s cluster.Slot) bool {
	m = &cluster.Manager{UseSlots: m.UseSlots, Slots: m.Slots}
	m.Slots.Unusable, m.Slots.Ignore = "", []cluster.SlotMatcher{{}}
	return PatroniDrops(m, s) == ""
}

// droppedByPatroni tells of each slot once, whatever the number of standbys.
func (c *cycle) droppedByPatroni() {
	m := c.o.Topology.Value.Manager
	if m == nil {
		return
	}
	var all []cluster.Slot
	for _, t := range c.slots {
		all = append(all, t.slot)
	}
	if len(all) == 0 && c.slotOn(c.lead.primary, cluster.HoldName) == nil {
		return // nothing of ours is anywhere
	}
	for _, s := range slices.Concat(all, OwnSlots()) {
		if why := c.drops(s); why != "" {
			c.condition(Condition{Code: CondPatroniWillDrop, Subject: s.Name, Severity: Critical,
				Message: fmt.Sprintf("Patroni drops slot %s when it starts, when the role changes or when a pause ends: %s", s.Name, why),
				Hint:    DropHint(m, s)})
		}
	}
}
