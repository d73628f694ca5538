package plan

import (
	"maps"
	"math"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// outlived names the members whose mirrors a promotion has put in danger: sessions
// of the promoted node that are older than its hold believe that rows are of no use
// which those mirrors need, and remove them now, whatever the slots of the node pin
// (D24). What its own slots need such a session cannot be wrong about, or the mirrors
// that they were had not been made. So those mirrors count that begin before the
// node's own slot, and only as far back as its hold did not pin. It is judged in the
// first read of the new timeline: what is made later is made from slots of this node.
func (c *cycle) outlived() []string {
	held := c.slotOn(c.lead.primary, cluster.HoldName)
	if !c.successor && !c.fresh || held == nil || held.Marker == nil || !held.Marker.UnheldBefore.OK {
		return nil
	}
	since := held.Marker.HeldSince
	if since.OK && since.V.Equal(c.m.Standbys[c.lead.primary].HeldForAll) {
		return nil // none lived any more, and none comes back
	}
	for _, name := range c.members() {
		if c.inDanger(name, *held.Marker) {
			c.endangered = append(c.endangered, name)
		}
	}
	return c.endangered
}

// members are all that may have mirrors: also those that the topology does not name
// at the moment, as Patroni's whose key has run out.
func (c *cycle) members() []string {
	names := slices.Concat(c.standbys, slices.Collect(maps.Keys(c.m.Standbys)))
	names = slices.DeleteFunc(names, func(name string) bool { return name == c.lead.primary })
	slices.Sort(names)
	return slices.Compact(names)
}

// inDanger: what a member that is away has of mirrors is known by their oldest
// catalog_xmin alone.
func (c *cycle) inDanger(member string, held cluster.Marker) bool {
	note := c.m.Standbys[member]
	read, ok := c.readable(member)
	if !ok {
		return note.ReadAt.IsZero() || note.OldestXmin.Normal() && note.OldestXmin.Precedes(held.UnheldBefore.V)
	}
	for _, s := range read.Slots {
		if !c.isMirror(s) || s.Marker.Timeline == c.m.Timeline || s.Marker.Generation < c.floors[member] {
			continue
		}
		from, own := s.Restart.Or(0), c.slotOn(c.lead.primary, s.Name)
		behind := own == nil || from < own.Restart.Or(0)
		if behind && from < held.HeldFrom.Or(math.MaxUint64) && s.CatalogXmin.Or(0).Precedes(held.UnheldBefore.V) {
			return true
		}
	}
	return false
}
