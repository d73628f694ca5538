package plan

import (
	"fmt"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// From PostgreSQL 17 on a standby with sync_replication_slots has a worker of
// its own that keeps copies of the slots whose failover flag is set. Such a pair
// is the server's: nothing is written for it, and it is judged all the same.

// serverKeeps reports whether the server's own worker keeps the slot on a standby.
func (c *cycle) serverKeeps(t *tracked, node string) bool {
	return t.failover && c.m.Standbys[node].SyncSlots
}

// serverAlone reports whether it does on every standby: no read of the slot is
// kept or held for anybody then.
func (c *cycle) serverAlone(t *tracked) bool {
	for _, node := range c.standbys {
		if !c.serverKeeps(t, node) {
			return false
		}
	}
	return len(c.standbys) > 0
}

// serverAlone is the same by memory, for what is asked before the plan is made.
func (m Memory) serverAlone(s cluster.Slot) bool {
	others := 0
	for name, note := range m.Standbys {
		if name == m.Primary {
			continue
		}
		if !note.SyncSlots {
			return false
		}
		others++
	}
	return s.Failover && others > 0
}

const theServers = "the server's own synchronization keeps it"

// leftover: a slot of that name that is no copy of the worker's. The worker ends
// with an error at the first one that it meets, for all slots.
func (pr *pair) leftover() bool { return pr.server && pr.there != nil && !pr.there.Synced }

func leftoverRule(c *cycle, pr *pair) *finding {
	if !pr.leftover() {
		return nil
	}
	name, there := pr.t.slot.Name, pr.there
	what := fmt.Sprintf("%s has a %s slot %s that the server's own synchronization did not make, which keeps it from copying any failover slot there", pr.node, there.Kind, name)
	switch {
	case !c.removable(*there):
		return &finding{Unsafe, ReasonNotOurs, what,
			fmt.Sprintf("slotkeeper did not make it either; if nobody needs it, drop it there: SELECT pg_drop_replication_slot(%s)", quoted(name))}
	case there.ActivePID != 0:
		return &finding{Unsafe, ReasonInUse, sentence(what, fmt.Sprintf("process %d is using it", there.ActivePID)), "consumers belong on the primary; disconnect this one"}
	}
	return &finding{Pending, ReasonNew, what, "it is slotkeeper's from before, and removed by itself; the server's worker tries again within a minute"}
}

func copyMissingRule(_ *cycle, pr *pair) *finding {
	if pr.there != nil {
		return nil
	}
	return &finding{Pending, ReasonNew, sentence(fmt.Sprintf("the server's own synchronization has not copied %s to %s yet", pr.t.slot.Name, pr.node), workerLacks(pr.fact.Value.Node)),
		"its worker needs hot_standby_feedback = on, a primary_slot_name, and a dbname in primary_conninfo; see that server's log"}
}

// workerLacks names what keeps the server's worker from running, as far as it can be seen.
func workerLacks(n cluster.Node) string {
	var lacks []string
	if !n.Feedback {
		lacks = append(lacks, "hot_standby_feedback is off there")
	}
	if n.PrimarySlotName == "" {
		lacks = append(lacks, "primary_slot_name is not set there")
	}
	return strings.Join(lacks, ", ")
}

func copyLostRule(_ *cycle, pr *pair) *finding {
	if why := pr.there.Invalidated; why != "" {
		return &finding{Lost, lostReason(why), fmt.Sprintf("the server's copy of %s on %s was invalidated (%s)", pr.t.slot.Name, pr.node, why),
			"the server drops it and makes it again by itself; see that server's log if this stays"}
	}
	return nil
}

func copyUnreadyRule(_ *cycle, pr *pair) *finding {
	name, there := pr.t.slot.Name, pr.there
	at, ok := there.Position()
	switch {
	case there.Temporary || !ok:
		return &finding{Pending, ReasonNew, fmt.Sprintf("the server's own synchronization has begun to copy %s to %s, and a promotion would not keep it yet", name, pr.node),
			"it waits until the slot has moved beyond what the standby still has: let its consumer confirm"}
	case there.Plugin != pr.t.slot.Plugin || there.DatabaseOID != pr.t.slot.DatabaseOID || there.TwoPhase != pr.t.slot.TwoPhase:
		return &finding{Pending, ReasonNew, fmt.Sprintf("the server's copy of %s on %s is of another slot: database %s, plugin %s", name, pr.node, orUnknown(there.Database), there.Plugin),
			"the server brings it up to date by itself; see that server's log if this stays"}
	case !there.WALok:
		return &finding{Pending, ReasonWALMissing, fmt.Sprintf("the server's copy of %s needs WAL from %s, which %s does not have", name, at.Restart, pr.node),
			"it heals when restart_lsn moves beyond what is missing"}
	}
	return nil
}

// copyAheadRule: the worker copies between our reads, so a copy may stand beyond
// what this read of the primary says. It is ahead where the next read of the
// primary does not reach it either.
func copyAheadRule(c *cycle, pr *pair) *finding {
	highest := c.copyLimit(pr.t)
	before, at := pr.note.Ahead, pr.there.Confirmed.Or(0)
	pr.note.Ahead = 0
	if highest == 0 || at <= highest {
		return nil
	}
	pr.note.Ahead = at
	if before == 0 || before <= highest {
		return nil
	}
	pr.note.Ahead = before
	return &finding{Unsafe, ReasonMirrorAhead, fmt.Sprintf("the server's copy of %s on %s is at %s, beyond all that the primary ever reported (%s)", pr.t.slot.Name, pr.node, at, highest),
		"a crash of the primary can take its slot back; it heals when the consumer has confirmed beyond that again"}
}

// copyLimit is as far as a copy may stand: what this primary has reported, or an
// earlier one before the timelines parted.
func (c *cycle) copyLimit(t *tracked) cluster.LSN {
	before := t.note.Before
	if history := c.lead.read.Node.History; len(history) > 0 {
		before = min(before, history[len(history)-1].LSN)
	}
	return max(t.note.HighestF, before)
}

// absentServer is what a standby's own read says of the server's copy while
// there is no primary.
func (c *cycle) absentServer(pr *pair, known bool) *finding {
	slot := pr.t.slot.Name
	switch {
	case pr.there == nil || !pr.there.Synced || pr.there.Temporary:
		return &finding{Unsafe, ReasonSlotMissing, fmt.Sprintf("%s has no copy of %s that a promotion would keep, and there is no primary to make one from", pr.node, slot),
			preferSafe}
	case pr.there.Invalidated != "":
		return copyLostRule(c, pr)
	case c.absentOutrun(pr) != nil:
		return c.absentOutrun(pr)
	case !known:
		return &finding{Unknown, ReasonStale, fmt.Sprintf("%s has the server's copy of %s; how far it is behind is not known without a primary", pr.node, slot),
			preferSafe}
	}
	return nil
}

// stoppedWorkers names every slot that stops the worker of a standby and that
// no step of this plan takes away, those of slots that nobody selected too.
func (c *cycle) stoppedWorkers() {
	for _, node := range c.standbys {
		read, ok := c.readable(node)
		if !ok || !read.Node.SyncSlots {
			continue
		}
		for _, s := range sortedSlots(c.lead.read.Slots) {
			there := c.slotOn(node, s.Name)
			if !s.Failover || s.Temporary || there == nil || there.Synced || c.takenAway(node, s.Name) {
				continue
			}
			c.condition(Condition{Code: CondSlotSyncStopped, Subject: node + "/" + s.Name, Severity: Critical,
				Message: fmt.Sprintf("slot %s on %s keeps the server's own worker there from copying any failover slot: the worker did not make it", s.Name, node),
				Hint:    fmt.Sprintf("if nobody needs it, drop it there: SELECT pg_drop_replication_slot(%s)", quoted(s.Name))})
		}
	}
}

func (c *cycle) takenAway(node, slot string) bool {
	for _, pr := range c.pairs {
		if pr.node == node && pr.t.slot.Name == slot {
			return pr.drop != ""
		}
	}
	return false
}
