package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The codes of what Patroni says of the whole cluster.
const (
	CondPaused         = "paused"
	CondStandbyCluster = "standby_cluster"
	// CondPatroniUnreadable: one of Patroni's keys cannot be read.
	CondPatroniUnreadable = "patroni_unreadable"
	CondEtcdUnreachable   = "etcd_unreachable"
	// CondUseSlotsOff: standbys stream without physical slots.
	CondUseSlotsOff = "use_slots_off"
	// CondPhysicalSlotShared: two members have names that Patroni makes one slot's of.
	CondPhysicalSlotShared = "physical_slot_shared"
)

// heedManager takes a primary back where what Patroni says forbids to write to
// it. Roles are PostgreSQL's word first; Patroni's key may be a moment old, so a
// disagreement counts only after the key's whole time to live.
func (c *cycle) heedManager() {
	topology := c.o.Topology.Value
	m := topology.Manager
	disagrees := m != nil && topology.Leader.OK && c.lead.primary != "" && topology.Leader.V != c.lead.primary
	switch {
	case !disagrees:
		c.m.DoubtSince = time.Time{}
	case c.m.DoubtSince.IsZero():
		c.m.DoubtSince = c.now
	}
	switch {
	case m == nil:
	case m.StandbyCluster:
		c.without(Condition{Code: CondStandbyCluster, Severity: Info,
			Message: fmt.Sprintf("this is a standby cluster: %s follows a server of another cluster, and nothing is mirrored here", orNobody(topology.Leader.V)),
			Hint:    "run slotkeeper on the cluster that takes the writes; here it begins when standby_cluster is taken out of Patroni's configuration"})
	case disagrees && c.now.Sub(c.m.DoubtSince) > m.TTL:
		c.without(Condition{Code: CondSplitBrain, Severity: Critical,
			Message: fmt.Sprintf("%s takes writes, but Patroni's leader has been %s for %s: nothing is written anywhere", c.lead.primary, topology.Leader.V, c.now.Sub(c.m.DoubtSince).Round(time.Second)),
			Hint:    fmt.Sprintf("look at Patroni's log on both; if %s is an old primary, stop it", c.lead.primary)})
	case c.lead.primary == "" && c.lead.trouble.Code == CondNoLeader:
		c.lead.trouble.Message += fmt.Sprintf("; Patroni's leader is %s", orNobody(topology.Leader.V))
	}
}

func (c *cycle) without(trouble Condition) {
	c.lead.primary, c.lead.trouble = "", &trouble
}

func orNobody(name string) string {
	if name == "" {
		return "nobody"
	}
	return name
}

// managerConditions are the same with a primary and without.
func (c *cycle) managerConditions() {
	topology := c.o.Topology
	if topology.Err != "" {
		c.condition(Condition{Code: CondEtcdUnreachable, Severity: Warning,
			Message: sentence("the topology cannot be read, the members known before are used", topology.Err),
			Hint:    "mirrors go on moving; none is made or dropped meanwhile. Look at etcd, and at scope and cluster.patroni.namespace"})
	}
	m := topology.Value.Manager
	if m == nil {
		return
	}
	if m.Paused {
		c.condition(Condition{Code: CondPaused, Severity: Warning, Message: "Patroni is paused: no mirror is made or dropped, and nobody is promoted by itself",
			Hint: "mirrors that are there go on moving; end the pause when the work is done (patronictl resume)"})
	}
	if leader := topology.Value.Leader; c.lead.primary != "" && !leader.OK {
		c.condition(Condition{Code: CondNoLeader, Severity: Warning,
			Message: fmt.Sprintf("Patroni has no leader, although %s takes writes: no mirror is made or dropped", c.lead.primary),
			Hint:    "look at Patroni's log there, and at etcd"})
	}
	for _, p := range m.Problems {
		c.condition(Condition{Code: CondPatroniUnreadable, Subject: p.Key, Severity: Warning,
			Message: sentence(fmt.Sprintf("Patroni's key %s cannot be read", p.Key), p.Text),
			Hint:    "what it says is not known; see who wrote it: nobody but Patroni should"})
	}
	if !m.UseSlots {
		c.condition(Condition{Code: CondUseSlotsOff, Severity: Warning,
			Message: "use_slots is off in Patroni's configuration: nothing keeps the WAL that a standby still needs",
			Hint:    "set postgresql.use_slots to true in the dynamic configuration"})
	}
	for name, members := range m.Slots.Members {
		if len(members) > 1 {
			c.condition(Condition{Code: CondPhysicalSlotShared, Subject: name, Severity: Warning,
				Message: fmt.Sprintf("members %s have names that Patroni makes one physical slot's of, %s: only one of them can stream through it", strings.Join(slices.Sorted(slices.Values(members)), " and "), name),
				Hint:    "rename all but one of them"})
		}
	}
}
