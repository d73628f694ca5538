package plan

import "fmt"

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
	case c.hold.state == holdUnsettled:
		return &finding{Unsafe, ReasonHoldNotSaved, fmt.Sprintf("the hold on %s does not count, so %s is not made on %s: %s", c.lead.primary, name, pr.node, c.hold.why),
			"it is saved again; look at the primary's log and free space if this stays"}
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
