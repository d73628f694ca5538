package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// patroniSessions is how the application_name of Patroni's own sessions begins.
const patroniSessions = "Patroni"

// endSessions ends Patroni's own idle sessions that keep mirrors from being made:
// a session that began before the hold remembers rows as of no use that a mirror
// needs, and could remove them after a promotion. Everybody else's sessions end by
// themselves or are told of; Patroni keeps its own for good, and opens others
// within the same loop when they are gone.
func (c *cycle) endSessions(node string) {
	if c.o.Topology.Value.Manager == nil {
		return
	}
	for _, pr := range c.mine(node) {
		if pr.send && pr.note.Tried.Code == cluster.CodeOldSession {
			c.step(Step{ID: "sessions/" + node, Stage: StageApply, Node: node, Kind: StepSessions, Names: []string{patroniSessions},
				Why: "Patroni connects anew; its sessions from before the hold could remove what " + pr.t.slot.Name + " needs"})
			return
		}
	}
}
