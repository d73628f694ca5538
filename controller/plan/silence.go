package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// silentTTLs: a fence that nobody has raised for so many lifetimes of a lease
// has no controller any more.
const silentTTLs = 10

// FenceWatch is a fence that refuses this controller, and since when this
// controller has seen it so, raised by nobody, by its own clock. A node's clock says
// nothing of that: where it jumps ahead, a fence that was raised a moment ago looks old.
type FenceWatch struct {
	Fence     cluster.Fence
	Heartbeat cluster.Opt[time.Time]
	Since     time.Time // the end of the read that showed it first
}

// watchFences goes on watching the fences that are as they were, and begins anew
// with each that somebody has raised or replaced. What is not read is not known to
// have been raised: the next read tells.
func (c *cycle) watchFences() {
	for name, fact := range c.o.Nodes {
		if !fact.OK() {
			continue
		}
		n := fact.Value.Node
		if c.refusal(n.Fence) == "" {
			delete(c.m.Watched, name)
			continue
		}
		seen := c.m.Watched[name]
		if seen.Since.IsZero() || seen.Fence != n.Fence.V || seen.Heartbeat.OK != n.Heartbeat.OK || !seen.Heartbeat.V.Equal(n.Heartbeat.V) {
			c.m.Watched[name] = FenceWatch{Fence: n.Fence.V, Heartbeat: n.Heartbeat, Since: c.now}
		}
	}
}

// silent reports whether the fence that refuses this controller was watched for
// long enough without being raised.
func (c *cycle) silent(name string) bool {
	seen, watched := c.m.Watched[name]
	return watched && seen.Heartbeat.OK && c.o.Nodes[name].At.Sub(seen.Since) > silentTTLs*c.p.LeaseTTL
}
