package plan

import "fmt"

func notOursRule(c *cycle, pr *pair) *finding {
	if pr.there == nil || c.removable(*pr.there) {
		return nil
	}
	if pr.there.Synced {
		return &finding{Unsafe, ReasonNotOurs, fmt.Sprintf("%s has a copy of %s that the server's own synchronization made, which does not keep it up to date now", pr.node, pr.t.slot.Name),
			"turn sync_replication_slots on there, or set the slot's failover flag on the primary: its worker then keeps it, or takes it away"}
	}
	if m := pr.there.Marker; m != nil && m.Scope != c.p.Scope {
		return &finding{Unsafe, ReasonNotOurs, fmt.Sprintf("%s has a %s slot %s that the slotkeeper of scope %q made, this controller is of scope %q", pr.node, pr.there.Kind, pr.t.slot.Name, m.Scope, c.p.Scope), scopeHint}
	}
	return &finding{Unsafe, ReasonNotOurs, fmt.Sprintf("%s has a %s slot %s that slotkeeper did not make", pr.node, pr.there.Kind, pr.t.slot.Name),
		fmt.Sprintf("it is not touched; if nobody needs it, drop it there: SELECT pg_drop_replication_slot(%s)", quoted(pr.t.slot.Name))}
}
