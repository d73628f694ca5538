package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// Whose sessions end: by the beginning of their application_name, or everybody's.
const (
	patroniSessions = "Patroni"
	allSessions     = "*"
)

// endSessions ends idle sessions that keep mirrors from being made: one that began
// before the hold remembers rows as of no use that a mirror needs, and could remove
// them after a promotion. Patroni keeps its own for good and opens others at once
// when they are gone; everybody else's only where that is wanted.
func (c *cycle) endSessions(node string) {
	whose := patroniSessions
	switch {
	case c.p.ManageOldSessions:
		whose = allSessions
	case c.o.Topology.Value.Manager == nil:
		return
	}
	for _, pr := range c.mine(node) {
		if pr.send && pr.note.Tried.Code == cluster.CodeOldSession {
			c.step(Step{ID: "sessions/" + node, Stage: StageApply, Node: node, Kind: StepSessions, Names: []string{whose},
				Why: "these sessions are older than the hold, and could remove what " + pr.t.slot.Name + " needs"})
			return
		}
	}
}
