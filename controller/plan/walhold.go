package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// walSlack is how far the WAL hold may lag behind what is needed before it is
// moved for that alone: one segment, since WAL is removed by segments.
const walSlack = 16 << 20

// walHold gives what a standby's WAL hold must be told: the oldest restart_lsn
// that a slot not mirrored there will need, 0 where none waits any more, absent
// where it stands well.
func (c *cycle) walHold(node string) cluster.Opt[cluster.LSN] {
	var want cluster.Opt[cluster.LSN]
	for _, pr := range c.mine(node) {
		if r, ok := c.awaitedWAL(pr); ok && (!want.OK || r < want.V) {
			want = cluster.Some(r)
		}
	}
	at := c.slotOn(node, cluster.WALHoldName)
	if at != nil && (!c.ours(*at) || at.Marker.Kind != cluster.MarkWAL) {
		return cluster.None[cluster.LSN]()
	}
	if !want.OK || at == nil && c.still() != "" {
		if at == nil {
			return cluster.None[cluster.LSN]()
		}
		return cluster.Some(cluster.LSN(0))
	}
	if at != nil && at.Invalidated == "" && at.WALok && at.Restart.Or(0) != 0 && at.Restart.V <= want.V && want.V-at.Restart.V < walSlack && !c.walTouchDue(node) {
		return cluster.None[cluster.LSN]()
	}
	return want
}

// awaitedWAL is where a pair's WAL must be kept from: it has no mirror that
// keeps it, and will get one. WAL that the standby said is gone is not asked for again.
func (c *cycle) awaitedWAL(pr *pair) (cluster.LSN, bool) {
	if pr.server || !c.canWrite(pr) || len(pr.t.kept) == 0 || pr.noRoom || pr.fact.Value.Node.WalLevel != "logical" {
		return 0, false
	}
	if pr.there != nil && !c.removable(*pr.there) {
		return 0, false
	}
	if pr.mirror != nil && pr.drop == "" {
		return 0, false
	}
	r := pr.t.kept[max(pr.best, 0)].Position.Restart
	gone := pr.note.Tried.Code == cluster.CodeWALMissing && pr.note.Tried.Position.Restart == r
	return r, !gone
}
