package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// lostRule: the server itself has given the slot up, on the primary or on the standby.
func lostRule(c *cycle, pr *pair) *finding {
	name := pr.t.slot.Name
	if why := pr.t.slot.Invalidated; why != "" {
		left := fmt.Sprintf("%s has no mirror of it", pr.node)
		if pr.mirror != nil && pr.mirror.Invalidated == "" {
			left = fmt.Sprintf("%s still has it at %s, which only a failover could use", pr.node, lsnText(pr.mirror.Confirmed))
		} else if pr.server {
			left = fmt.Sprintf("the server's copy on %s follows it", pr.node)
		}
		return &finding{Lost, lostReason(why), fmt.Sprintf("%s is lost on the primary %s (%s); %s", name, c.lead.primary, why, left),
			"drop it, create it again and let its consumer start anew; raise max_slot_wal_keep_size if consumers may stay away that long"}
	}
	if pr.mirror != nil && pr.mirror.Invalidated != "" {
		return &finding{Lost, lostReason(pr.mirror.Invalidated), fmt.Sprintf("the mirror of %s on %s was invalidated by the server (%s)", name, pr.node, pr.mirror.Invalidated),
			"it is dropped and made again; raise max_slot_wal_keep_size on the standby if this comes back"}
	}
	return nil
}

func lostReason(invalidated string) Reason {
	switch r := Reason(invalidated); r {
	case ReasonRowsRemoved, ReasonWalLevelInsufficient, ReasonIdleTimeout:
		return r
	}
	return ReasonWALRemoved
}

// silentRule: nothing is known of a standby that gives no answer.
func silentRule(_ *cycle, pr *pair) *finding {
	switch pr.fact.Reason {
	case ReasonExtensionUnavailable, ReasonWrongEndpoint:
		return nil
	}
	if pr.fact.OK() {
		return nil
	}
	reason := pr.fact.Reason
	if reason != ReasonStale && reason != ReasonNoPrivilege {
		reason = ReasonUnreachable
	}
	hint := "bring the node back, or look at its address; its mirrors stay as they are"
	if reason == ReasonNoPrivilege {
		hint = "grant the controller's role what the extension's installation says"
	}
	return &finding{Unknown, reason, sentence(fmt.Sprintf("%s gives no answer about %s", pr.node, pr.t.slot.Name), pr.fact.Err), orHint(pr.fact.Hint, hint)}
}

func endpointRule(c *cycle, pr *pair) *finding {
	if pr.read {
		return nil
	}
	switch {
	case pr.fact.Reason == ReasonExtensionUnavailable:
		return &finding{Unsafe, ReasonExtensionUnavailable, sentence("the extension cannot be used on "+pr.node, pr.fact.Err),
			orHint(pr.fact.Hint, "install slotkeeper's library there, and run CREATE EXTENSION slotkeeper on the primary")}
	case pr.fact.OK() && pr.fact.Value.Node.SystemID == c.lead.systemID:
		return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("%s is not in recovery although %s is the primary", pr.node, c.lead.primary), "make it a standby of the primary"}
	case pr.fact.OK():
		return &finding{Unsafe, ReasonWrongEndpoint, fmt.Sprintf("the address of %s leads to system %s, not to the cluster's %s", pr.node, pr.fact.Value.Node.SystemID, c.lead.systemID),
			"mend the member's conninfo; nothing is ever written there"}
	}
	return &finding{Unsafe, ReasonWrongEndpoint, sentence("the address of "+pr.node+" leads to another server", pr.fact.Err),
		orHint(pr.fact.Hint, "mend the member's conninfo; nothing is ever written there")}
}

func timelineRule(c *cycle, pr *pair) *finding {
	at, want := pr.fact.Value.Node.Timeline, c.lead.read.Node.Timeline
	if at != want {
		return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("%s replays timeline %d, the primary %s is on timeline %d", pr.node, at, c.lead.primary, want),
			"let it follow the new primary, with pg_rewind or a new base backup if it has diverged"}
	}
	if pr.mirror != nil && pastFork(*pr.mirror, c.lead.read.Node) {
		return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("the mirror of %s on %s stands at %s of timeline %d, which timeline %d does not contain",
			pr.t.slot.Name, pr.node, lsnText(pr.mirror.Confirmed), pr.mirror.Marker.Timeline, want), "it is replaced by itself"}
	}
	return nil
}

func notOursRule(c *cycle, pr *pair) *finding {
	if pr.there == nil || c.removable(*pr.there) {
		return nil
	}
	if pr.there.Synced {
		return &finding{Unsafe, ReasonNotOurs, fmt.Sprintf("%s has a copy of %s that the server's own synchronization made, which does not keep it up to date now", pr.node, pr.t.slot.Name),
			"turn sync_replication_slots on there, or set the slot's failover flag on the primary: its worker then keeps it, or takes it away"}
	}
	return &finding{Unsafe, ReasonNotOurs, fmt.Sprintf("%s has a %s slot %s that slotkeeper did not make", pr.node, pr.there.Kind, pr.t.slot.Name),
		fmt.Sprintf("it is not touched; if nobody needs it, drop it there: SELECT pg_drop_replication_slot(%s)", quoted(pr.t.slot.Name))}
}

func inUseRule(_ *cycle, pr *pair) *finding {
	if pr.mirror == nil || pr.mirror.ActivePID == 0 {
		return nil
	}
	return &finding{Unsafe, ReasonInUse, fmt.Sprintf("process %d on %s is using the mirror of %s, which cannot be moved meanwhile", pr.mirror.ActivePID, pr.node, pr.t.slot.Name),
		"consumers belong on the primary; disconnect this one"}
}

func walLevelRule(_ *cycle, pr *pair) *finding {
	if level := pr.fact.Value.Node.WalLevel; level != "logical" {
		return &finding{Unsafe, ReasonWalLevel, fmt.Sprintf("wal_level is %s on %s: a logical slot there would keep the server from starting", orUnknown(level), pr.node),
			"set wal_level = logical there and restart it"}
	}
	return nil
}

func pluginRule(_ *cycle, pr *pair) *finding {
	if pr.note.Tried.Code != cluster.CodePluginMissing {
		return nil
	}
	return triedFinding(pr)
}

func roomRule(c *cycle, pr *pair) *finding {
	if !pr.noRoom {
		return nil
	}
	read := pr.fact.Value
	return &finding{Unsafe, ReasonNoFreeSlot, fmt.Sprintf("%s has no slot free for %s: %d are needed, %d are available", pr.node, pr.t.slot.Name, c.neededSlots(pr.node), c.available(read)),
		fmt.Sprintf("raise max_replication_slots there to %d or more and restart it", read.Node.MaxSlots+c.neededSlots(pr.node)-c.available(read))}
}

func gapRule(c *cycle, pr *pair) *finding {
	switch pr.prot {
	case protGap:
		return &finding{Unsafe, ReasonProtectionGap, fmt.Sprintf("the catalog rows of %s on %s (catalog_xmin %s, generation %d) were not held throughout: %s",
			pr.t.slot.Name, pr.node, pr.mirror.CatalogXmin.Or(0), pr.mirror.Marker.Generation, c.gapCause(pr)), "it is dropped and made again from a new read"}
	case protWitnessed:
		return &finding{Unsafe, ReasonProtectionGap, fmt.Sprintf("nothing holds the catalog rows of %s on %s but the slot itself: %s", pr.t.slot.Name, pr.node, c.gapCause(pr)),
			"it is held and stamped again in this cycle"}
	}
	return nil
}

func (c *cycle) gapCause(pr *pair) string {
	if c.hold.why != "" {
		return fmt.Sprintf("the hold on %s: %s", c.lead.primary, c.hold.why)
	}
	if !c.hold.pins(pr.mirror.CatalogXmin.Or(0)) {
		return fmt.Sprintf("the hold on %s pins from %s only", c.lead.primary, c.hold.xmin)
	}
	return fmt.Sprintf("the holds are of generation %d", c.m.Generation)
}

func holdRule(c *cycle, pr *pair) *finding {
	if pr.prot != protUnsettled {
		return nil
	}
	return &finding{Unsafe, ReasonHoldNotSaved, fmt.Sprintf("the hold on %s does not count, so %s on %s is not protected: %s", c.lead.primary, pr.t.slot.Name, pr.node, c.hold.why),
		"it is saved again; look at the primary's log and free space if this stays"}
}

// aheadRule: a mirror of ours stands only where the slot has been.
func aheadRule(c *cycle, pr *pair) *finding {
	if pr.mirror == nil || c.replaces(pr) {
		return nil
	}
	highest := max(pr.t.note.HighestF, pr.t.note.Before)
	if at := pr.mirror.Confirmed.Or(0); highest != 0 && at > highest {
		return &finding{Unsafe, ReasonMirrorAhead, fmt.Sprintf("the mirror of %s on %s is at %s, beyond all that the primary ever reported (%s)", pr.t.slot.Name, pr.node, at, highest),
			"something has moved it: a consumer that goes on from there would miss rows; drop it and it is made again"}
	}
	return nil
}

func fencedRule(c *cycle, pr *pair) *finding {
	for _, at := range []struct {
		name string
		node cluster.Node
	}{{pr.node, pr.fact.Value.Node}, {c.lead.primary, c.lead.read.Node}} {
		if why := c.fenceTrouble(at.node); why != "" {
			hint := fencedHint
			if c.foreignFence(at.node) {
				hint = foreignHint
			}
			return &finding{Unsafe, ReasonFenced, sentence(at.name+" refuses this controller", why), hint}
		}
	}
	return nil
}

// absentRule: no mirror of this slot there yet. Why, and what it waits for.
func absentRule(c *cycle, pr *pair) *finding {
	if pr.mirror != nil && !c.replaces(pr) {
		return nil
	}
	name, node := pr.t.slot.Name, pr.fact.Value.Node
	switch {
	case !pr.t.located:
		return &finding{Pending, ReasonNew, fmt.Sprintf("%s is still being made on the primary %s: it has no position yet", name, c.lead.primary),
			"its creation waits for the transactions that are open; let them end"}
	case pr.t.held:
		return &finding{Pending, ReasonNew, fmt.Sprintf("%s is not on %s yet: the primary %s reports %s, less than %s before", name, pr.node, c.lead.primary, pr.t.pos.Confirmed, pr.t.note.HighestF),
			"it is made when its consumer has confirmed beyond that again"}
	case pr.send:
		return &finding{Pending, ReasonNew, fmt.Sprintf("%s is being made on %s", name, pr.node), "wait for the next cycle"}
	case len(pr.t.kept) == 0:
		return &finding{Pending, ReasonNew, fmt.Sprintf("%s is not on %s yet: no read of it is protected by the hold", name, pr.node), "it is held with the next read; look at the hold on the primary if this stays"}
	case pr.best < 0 && node.Receive.OK && node.Receive.V < pr.t.kept[0].Position.Confirmed:
		return &finding{Pending, ReasonReceiveLag, fmt.Sprintf("%s is not on %s yet: it %s", name, pr.node, behindText(pr.t.kept[0].Position.Confirmed, "has received", node.Receive)),
			"it is made as soon as the standby has the WAL; look at its walreceiver if this stays"}
	case pr.best < 0:
		return &finding{Pending, ReasonReplayLag, fmt.Sprintf("%s is not on %s yet: it %s", name, pr.node, behindText(pr.t.kept[0].Position.Confirmed, "has replayed", node.Replay)),
			"it is made as soon as the standby has replayed that far; look at recovery_min_apply_delay and pg_is_wal_replay_paused() if this stays"}
	case pr.note.Tried.Code != "":
		return triedFinding(pr)
	}
	return &finding{Pending, ReasonNew, fmt.Sprintf("%s is not on %s yet", name, pr.node), "wait for the next cycle"}
}

// unfitRule: the mirror is there and protected, but could not be decoded from.
func unfitRule(_ *cycle, pr *pair) *finding {
	m, name := pr.mirror, pr.t.slot.Name
	at, ok := m.Position()
	switch {
	case !ok:
		return &finding{Pending, ReasonNew, fmt.Sprintf("the mirror of %s on %s has no position", name, pr.node), "it is dropped and made again"}
	case !m.WALok:
		return &finding{Pending, ReasonWALMissing, fmt.Sprintf("%s needs WAL from %s, which %s does not have", name, at.Restart, pr.node),
			"it heals when restart_lsn moves beyond what is missing"}
	case snapshotGone(*m):
		return &finding{Pending, ReasonBadSnapshot, fmt.Sprintf("the snapshot file of %s at %s on %s is %s", name, m.Marker.Witness.Or(at.Restart), pr.node, m.Snapshot), "it is shipped again"}
	case !m.Saved:
		return &finding{Pending, ReasonBusy, fmt.Sprintf("the mirror of %s on %s is not saved to disk yet", name, pr.node), "look at the standby's log and free space if this stays"}
	}
	return nil
}
