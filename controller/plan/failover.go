package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// noteFailover remembers the failover flag. A mirror never has it, so after a
// promotion it is due on a slot that had it before. Without the ledger nobody
// knows: then the flag stays as the new primary's slot has it.
func (c *cycle) noteFailover(t *tracked, known bool) {
	n := &t.note
	switch {
	case t.slot.Failover || !known || t.recreated:
		n.Failover, n.FailoverDue = t.slot.Failover, false
	case c.successor && n.Failover:
		n.FailoverDue = true
	case !n.FailoverDue:
		n.Failover = false
	}
	// Where this first cycle sets it, the server's workers go on as they were. Where
	// it cannot, their pairs are ours until it is set.
	t.failover = t.slot.Failover || c.successor && n.FailoverDue && c.failoverFree(t)
}

// failoverFree: the command waits as long as somebody has the slot.
func (c *cycle) failoverFree(t *tracked) bool {
	return t.slot.ActivePID == 0 && t.slot.Invalidated == "" && c.now.Sub(t.note.FailoverTried) >= c.p.Interval
}

// failoverStep sets the flag again on the slots that are free.
func (c *cycle) failoverStep() {
	var names []string
	for _, t := range c.slots {
		if t.note.FailoverDue && c.failoverFree(t) {
			names = append(names, t.slot.Name)
		}
	}
	if len(names) > 0 {
		c.step(Step{ID: "failover/" + c.lead.primary, Stage: StageFailover, Node: c.lead.primary, Kind: StepFailover, Names: names,
			Why: "these slots had the failover flag before the promotion"})
	}
}

func (c *cycle) failoverConditions() {
	for _, t := range c.slots {
		if !t.note.FailoverDue || t.slot.Invalidated != "" || c.failoverFree(t) {
			continue
		}
		why := t.note.FailoverSaid
		if t.slot.ActivePID != 0 {
			why = fmt.Sprintf("process %d has it, and the server waits for that", t.slot.ActivePID)
		}
		c.condition(failoverPending(t.slot.Name, c.lead.primary, why, ""))
	}
}

func failoverPending(slot, node, why, hint string) Condition {
	return Condition{Code: CondFailoverFlagPending, Subject: slot, Severity: Warning,
		Message: sentence(fmt.Sprintf("slot %s had the failover flag before the promotion and does not have it on %s yet", slot, node), why),
		Hint:    orHint(hint, "it is set as soon as the slot is free: let its consumer reconnect; slotkeeper mirrors it meanwhile")}
}

// settleFailover takes into memory what came of the step.
func (s *settling) settleFailover(step Step, out StepOutcome) {
	if out.StepID == "" {
		return
	}
	for _, name := range step.Names {
		note, ok := s.m.Slots[name]
		if !ok {
			continue
		}
		note.FailoverTried, note.FailoverSaid = s.now, sentence(out.Skipped, out.Err)
		for _, row := range out.Outcomes {
			if row.Name != name {
				continue
			}
			note.FailoverSaid, note.FailoverDue = row.Detail, row.Code != cluster.CodeSet
		}
		s.m.Slots[name] = note
	}
}
