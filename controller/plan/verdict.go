package plan

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// finding is what one rule has to say of a pair.
type finding struct {
	state         State
	reason        Reason
	message, hint string
}

// judge gives the pair its verdict as observed, before any outcome.
func (c *cycle) judge(pr *pair) {
	v := c.blank(pr)
	f := c.findings(pr)
	if f != nil && f.reason == ReasonProtectionGap && pr.prot == protWitnessed {
		whole := *pr
		whole.prot = protWhole
		pr.unstamped = c.findings(&whole) == nil
	}
	if f == nil {
		f = &finding{state: Safe, message: c.safeMessage(pr)}
		pr.note.ProvenAt = pr.fact.At
	}
	v.State, v.Reason, v.Message, v.Hint = f.state, f.reason, f.message, f.hint
	v.ProofAge = proofAge(c.now, pr.note.ProvenAt)
	pr.verdict = v
}

func (c *cycle) findings(pr *pair) *finding {
	list := rules
	if pr.server {
		list = serverRules
	}
	for _, rule := range list {
		if f := rule(c, pr); f != nil {
			return f
		}
	}
	return nil
}

// blank is a verdict with what is known of the mirror whatever the state is:
// of a standby that is silent, what was last seen.
func (c *cycle) blank(pr *pair) Verdict {
	v := Verdict{Slot: pr.t.slot.Name, Standby: pr.node}
	if !pr.read {
		v.Mirror = pr.note.Verdict.Mirror
	} else if m := pr.counted(); m != nil {
		if at, ok := m.Position(); ok {
			v.Mirror = cluster.Some(at)
		}
	}
	v.LagBytes = lagBytes(pr.t, v.Mirror)
	return v
}

// lagBytes is 0 where the primary reports less than the mirror: it went backward.
func lagBytes(t *tracked, mirror cluster.Opt[cluster.Position]) cluster.Opt[int64] {
	if !mirror.OK || !t.located {
		return cluster.None[int64]()
	}
	if t.pos.Confirmed <= mirror.V.Confirmed {
		return cluster.Some(int64(0))
	}
	return cluster.Some(int64(t.pos.Confirmed - mirror.V.Confirmed))
}

func proofAge(now, proven time.Time) cluster.Opt[time.Duration] {
	if proven.IsZero() {
		return cluster.None[time.Duration]()
	}
	return cluster.Some(max(now.Sub(proven), 0))
}

func since(now time.Time, v, before Verdict) time.Time {
	if before.State == v.State && before.Reason == v.Reason && !before.Since.IsZero() {
		return before.Since
	}
	return now
}

// counted is the slot there that a promotion would make the consumer's: our
// mirror, or the server's copy.
func (pr *pair) counted() *cluster.Slot {
	if pr.server && pr.there != nil && pr.there.Synced && !pr.there.Temporary {
		return pr.there
	}
	return pr.mirror
}

func (c *cycle) safeMessage(pr *pair) string {
	if pr.server {
		return safeMessage(pr.t, pr.node, cluster.Some(pr.there.Confirmed.Or(0))) + "; " + theServers
	}
	return safeMessage(pr.t, pr.node, cluster.Some(pr.mirror.Confirmed.Or(0)))
}

func safeMessage(t *tracked, node string, at cluster.Opt[cluster.LSN]) string {
	if t.located && t.pos.Confirmed > at.V {
		return fmt.Sprintf("%s can go on from %s at %s, %d bytes behind the primary's %s", t.slot.Name, node, at.V, uint64(t.pos.Confirmed-at.V), t.pos.Confirmed)
	}
	return fmt.Sprintf("%s can go on from %s at %s", t.slot.Name, node, at.V)
}
