package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// touchesPerTimeout is how often a mirror is taken in hand within
// idle_replication_slot_timeout (18 and later), at which a checkpoint invalidates
// every slot that nobody has had for so long. The hold has no restart_lsn and is exempt.
const touchesPerTimeout = 3

// touch has an idle mirror taken in hand by a change to where it stands. Only one
// that is protected: the call gives it the generation of today.
func (c *cycle) touch(pr *pair) {
	limit := pr.fact.Value.Node.IdleSlotTimeout
	if limit <= 0 || pr.send || pr.prot != protWhole || pr.drop != "" || !c.canWrite(pr) || !c.changeable(pr) || c.replaces(pr) {
		return
	}
	if _, ok := pr.mirror.Position(); !ok || c.now.Sub(pr.note.Touched) < limit/touchesPerTimeout {
		return
	}
	pr.touch = true
}

func (c *cycle) touchStep(node string) {
	var changes []cluster.Change
	for _, pr := range c.mine(node) {
		if !pr.touch {
			continue
		}
		m := pr.mirror
		at, _ := m.Position()
		changes = append(changes, cluster.Change{
			Name: m.Name, Plugin: m.Plugin, DatabaseOID: m.DatabaseOID, TwoPhase: m.TwoPhase, TwoPhaseAt: m.TwoPhaseAt,
			Position: at, Source: m.Marker.Source,
		})
	}
	if len(changes) > 0 {
		c.step(Step{ID: "touch/" + node, Stage: StageApply, Node: node, Kind: StepApply, Changes: changes, MaxBytes: c.p.MaxWalk,
			Why: "the server invalidates slots that nobody has had in hand for idle_replication_slot_timeout"})
	}
}

func (c *cycle) idleConditions() {
	for _, node := range c.standbys {
		read, ok := c.readable(node)
		if limit := read.Node.IdleSlotTimeout; ok && limit > 0 {
			c.condition(Condition{Code: CondIdleSlotTimeout, Subject: node, Severity: Warning,
				Message: fmt.Sprintf("idle_replication_slot_timeout is %s on %s: the server invalidates mirrors that nobody has in hand for so long", limit, node),
				Hint:    fmt.Sprintf("slotkeeper has them in hand each %s; without it they are lost after that time: set it to 0 on standbys", limit/touchesPerTimeout)})
		}
	}
}

// walTouchDue is the same for the WAL hold, which has a restart_lsn.
func (c *cycle) walTouchDue(node string) bool {
	limit := c.o.Nodes[node].Value.Node.IdleSlotTimeout
	return limit > 0 && c.now.Sub(c.m.Standbys[node].WALTouched) >= limit/touchesPerTimeout
}

// settleTouch remembers what a call has had in hand.
func (s *settling) settleTouch(pr *pair, note *PairNote) {
	step := s.sent[Pair{Slot: pr.t.slot.Name, Standby: pr.node}]
	if step == nil {
		return
	}
	if row := s.rows[step.ID][pr.t.slot.Name]; row != nil && succeeded(row.Code) {
		note.Touched = s.now
	}
}

func (s *settling) settleWALTouch(step Step, out StepOutcome) {
	for _, row := range out.Outcomes {
		if row.Name == cluster.WALHoldName && row.Code == cluster.CodeHeld {
			note := s.m.Standbys[step.Node]
			note.WALTouched = s.now
			s.m.Standbys[step.Node] = note
		}
	}
}
