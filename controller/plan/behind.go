package plan

import "fmt"

// primaryBehind: a slot of the primary that reports less than it did, or than a
// mirror has: confirmed_flush_lsn is not saved at each move, and a crash takes it back.
func (c *cycle) primaryBehind() {
	ahead := map[*tracked]bool{}
	for _, pr := range c.pairs {
		if pr.mirror != nil && !pr.note.Moved && pr.t.located && pr.t.pos.Confirmed < pr.mirror.Confirmed.Or(0) && !c.replaces(pr) {
			ahead[pr.t] = true
		}
	}
	for _, t := range c.slots {
		if !t.held && !ahead[t] {
			continue
		}
		c.condition(Condition{Code: CondPrimaryBehindMirror, Subject: t.slot.Name, Severity: Info,
			Message: fmt.Sprintf("%s is at %s on %s, less than it was (%s) or than a mirror is", t.slot.Name, t.pos.Confirmed, c.lead.primary, max(t.note.HighestF, t.note.Before)),
			Hint:    "mirrors wait; it clears itself when the consumer confirms again"})
	}
}
