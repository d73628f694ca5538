package plan

import "fmt"

// still says why no mirror is made and nothing is dropped now, "" where both may
// be. Mirrors that are there go on moving: that takes nothing from anybody.
func (c *cycle) still() string {
	topology := c.o.Topology.Value
	switch {
	case c.o.Topology.Err != "":
		return "the topology cannot be read"
	case topology.Manager == nil:
		return ""
	case topology.Manager.Paused:
		return "Patroni is paused"
	case !topology.Leader.OK:
		return "Patroni has no leader"
	case topology.Leader.V != c.lead.primary:
		return fmt.Sprintf("Patroni's leader is %s, and %s takes writes", topology.Leader.V, c.lead.primary)
	}
	return ""
}

// stillRule: what is not there has to wait.
func stillRule(c *cycle, pr *pair) *finding {
	why := c.still()
	if why == "" || pr.mirror != nil && !c.replaces(pr) {
		return nil
	}
	return &finding{Pending, ReasonNew, sentence(fmt.Sprintf("%s is not made on %s now", pr.t.slot.Name, pr.node), why), "it is made as soon as that is over"}
}

// rest keeps a pair's change back while nothing may be made.
func (c *cycle) rest(pr *pair) bool {
	return c.still() != "" && (pr.there == nil || pr.there.Marker == nil || c.replaces(pr))
}
