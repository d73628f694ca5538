package controller

import (
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// logTopology says what changed in what the failover manager says. A source of
// another kind says nothing that is not in the configuration.
func (c *Controller) logTopology(now plan.Fact[cluster.Topology]) {
	before := c.topology
	c.topology = now
	log := c.deps.Logger.Named("topology")
	if now.Err != before.Err {
		if now.Err != "" {
			log.Warn("the topology cannot be read, the last one known is used", "error", now.Err)
		} else {
			log.Info("the topology can be read again")
		}
	}
	manager := now.Value.Manager
	if manager == nil {
		return
	}
	old := before.Value.Manager
	if first := old == nil; first || now.Value.Leader != before.Value.Leader {
		log.Info("leader", "leader", named(now.Value.Leader), "was", named(before.Value.Leader))
	}
	if names := memberNames(now.Value); !slices.Equal(names, memberNames(before.Value)) {
		log.Info("members", "members", names)
	}
	if manager.Paused != (old != nil && old.Paused) {
		log.Info("pause", "paused", manager.Paused)
	}
}

func named(leader cluster.Opt[string]) string { return leader.Or("none") }

func memberNames(t cluster.Topology) []string {
	names := make([]string, 0, len(t.Members))
	for _, m := range t.Members {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
