package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// synchronized_standby_slots (17 and later) holds the consumers of failover slots
// back until the standbys of these physical slots have what is sent. One entry
// that no standby streams through stops them all.

var slotName = regexp.MustCompile(`^[a-z0-9_]+$`)

// gateEntries is the list of a node; none where it is written in a way that this
// program does not know.
func gateEntries(n cluster.Node) []string {
	for _, entry := range n.SynchronizedStandbySlots {
		if !slotName.MatchString(entry) {
			return nil
		}
	}
	return n.SynchronizedStandbySlots
}

// gateStalls says why an entry of the primary's list holds everything back, ""
// where it does not.
func (c *cycle) gateStalls(entry string) string {
	s := c.slotOn(c.lead.primary, entry)
	switch {
	case s == nil && entry == c.lead.read.Node.PrimarySlotName:
		return fmt.Sprintf("there is no such slot: it is the primary_slot_name of %s itself, through which it streamed as a standby", c.lead.primary)
	case s == nil:
		return "there is no such slot"
	case s.Kind != cluster.Physical:
		return "it is a logical slot"
	case s.Invalidated != "":
		return fmt.Sprintf("it is invalidated (%s)", s.Invalidated)
	case s.Restart.Or(0) == 0:
		return "it has no restart_lsn: no standby has streamed through it yet"
	case s.ActivePID == 0:
		return "it is inactive: no standby streams through it"
	}
	return ""
}

func (c *cycle) gateConditions() {
	for _, entry := range gateEntries(c.lead.read.Node) {
		if why := c.gateStalls(entry); why != "" {
			c.condition(Condition{Code: CondStandbyGateStalled, Subject: entry, Severity: Critical,
				Message: fmt.Sprintf("synchronized_standby_slots on %s lists %s, and the consumers of failover slots wait for it: %s", c.lead.primary, entry, why),
				Hint:    c.gateHint()})
		}
	}
	for _, node := range c.standbys {
		read, ok := c.readable(node)
		if own := read.Node.PrimarySlotName; ok && own != "" && slices.Contains(gateEntries(read.Node), own) {
			c.condition(Condition{Code: CondStandbyGateStalled, Subject: node + "/" + own, Severity: Critical,
				Message: fmt.Sprintf("synchronized_standby_slots on %s lists %s, the primary_slot_name of %s itself: once promoted it waits for itself, and no consumer of a failover slot gets anything", node, own, node),
				Hint:    "take it out of the list there: a node never lists its own slot"})
		}
	}
}

func (c *cycle) gateHint() string {
	if !c.p.ManageStandbySlots {
		return "let that standby stream again, or take the entry out: ALTER SYSTEM SET synchronized_standby_slots = ...; SELECT pg_reload_conf()"
	}
	if len(c.liveSlots()) == 0 {
		return "no standby streams, so the list stays as it is: an empty one would let consumers get ahead of every standby; set it to '' by hand if they must go on"
	}
	return "it is taken out of the list by itself"
}

// liveSlots are the physical slots of the standbys that stream from the primary
// and may be promoted, in order.
func (c *cycle) liveSlots() []string {
	var names []string
	for _, node := range c.standbys {
		read, ok := c.readable(node)
		name := read.Node.PrimarySlotName
		if ok && name != "" && name != c.lead.read.Node.PrimarySlotName && !c.never(node) && c.streams(name) && c.gateStalls(name) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *cycle) streams(slot string) bool {
	return slices.ContainsFunc(c.lead.read.Walsenders, func(w cluster.Walsender) bool { return w.SlotName == slot && w.State == "streaming" })
}

// never reports whether a member is marked as one that is never promoted.
func (c *cycle) never(node string) bool {
	for _, m := range c.o.Topology.Value.Members {
		if m.Name == node {
			return m.Tags["nofailover"] == "true"
		}
	}
	return false
}

// gateSteps keeps the lists where the configuration asks for it: on the primary
// to the live candidates, never to nobody; on a standby free of its own name.
func (c *cycle) gateSteps(targets []string) {
	if !c.p.ManageStandbySlots || c.lead.read.Node.ServerVersion < 170000 {
		return
	}
	have, want := c.lead.read.Node.SynchronizedStandbySlots, c.liveSlots()
	if len(want) > 0 && !sameNames(have, want) {
		c.gateStep(c.lead.primary, want, fmt.Sprintf("the candidates that stream are %s, the list is %q", strings.Join(want, ", "), strings.Join(have, ", ")))
	}
	for _, node := range targets[1:] {
		n := c.o.Nodes[node].Value.Node
		rest := slices.DeleteFunc(slices.Clone(gateEntries(n)), func(entry string) bool { return entry == n.PrimarySlotName })
		if len(rest) != len(gateEntries(n)) {
			c.gateStep(node, rest, "a node never lists its own slot "+n.PrimarySlotName)
		}
	}
}

// gateStep: a setting shows at the next read at the earliest, so it is not set
// again before an interval has passed.
func (c *cycle) gateStep(node string, names []string, why string) {
	if last, ok := c.m.GateAt[node]; ok && c.now.Sub(last) < c.p.Interval {
		return
	}
	c.step(Step{ID: "gate/" + node, Stage: StageGate, Node: node, Kind: StepGate, Names: names, Why: why})
}

func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// gateRefused is the condition of a list that could not be set.
func gateRefused(step Step, row cluster.Outcome) Condition {
	return Condition{Code: CondStandbyGateUnmanaged, Subject: step.Node, Severity: Warning,
		Message: sentence("synchronized_standby_slots cannot be set on "+step.Node, row.Detail), Hint: row.Hint}
}
