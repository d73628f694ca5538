package plan

import "fmt"

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
