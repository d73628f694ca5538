package plan

import "fmt"

// twoPhaseRule: without two_phase_at a decoder would send transactions that were
// prepared before it a second time, or never; slots of 13 have nothing of it.
func twoPhaseRule(_ *cycle, pr *pair) *finding {
	why := pr.twoPhaseTrouble()
	if why == "" {
		return nil
	}
	return &finding{Unsafe, ReasonTwoPhaseUnsupported, fmt.Sprintf("%s decodes prepared transactions, and no mirror of it can be made on %s: %s", pr.t.slot.Name, pr.node, why),
		"create the slot again without two_phase, or use one release of PostgreSQL and slotkeeper everywhere"}
}

func (pr *pair) twoPhaseTrouble() string {
	switch version := pr.fact.Value.Node.ServerVersion; {
	case !pr.t.slot.TwoPhase:
		return ""
	case version < 140000:
		return fmt.Sprintf("slots of PostgreSQL %d do not have that", version/10000)
	case version < 180000 && pr.t.located && pr.t.slot.TwoPhaseAt.Or(0) == 0:
		// From 18 on ALTER_REPLICATION_SLOT turns it on without one, and then the
		// primary itself goes by nothing else than confirmed_flush_lsn.
		return "it is not known from where on it sends them (two_phase_at)"
	}
	return ""
}
