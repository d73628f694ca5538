package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// standbyNames gives the members whose pairs are judged: those of the topology
// and those that were read, in order, without the primary. Where the topology
// is silent, those remembered too.
func standbyNames(o Observation, m Memory, primary string) []string {
	names := map[string]bool{}
	for _, member := range o.Topology.Value.Members {
		names[member.Name] = o.Topology.OK()
	}
	for name := range o.Nodes {
		names[name] = true
	}
	if !o.Topology.OK() {
		for name := range m.Standbys {
			names[name] = true
		}
	}
	maps.DeleteFunc(names, func(name string, in bool) bool { return !in || name == primary })
	return slices.Sorted(maps.Keys(names))
}

// noteMembers remembers of each member when it was read and what its mirrors
// need; a member that is away is counted on from the last time, until it is
// given up: a reboot costs nobody anything.
func (c *cycle) noteMembers() {
	known := map[string]bool{}
	for _, name := range standbyNames(c.o, c.m, "") {
		known[name] = true
	}
	for name := range c.m.Standbys {
		known[name] = true
	}
	for name := range known {
		note, known := c.m.Standbys[name]
		if !known {
			// It may be one that was given up, under another name: no raise since then
			// has waited for its mirrors.
			note.MinGeneration = c.m.Generation
		}
		fact := c.o.Nodes[name]
		if !fact.OK() || fact.Value.Node.SystemID != c.lead.systemID {
			c.noteAway(name, note)
			continue
		}
		c.firsts[name] = note.ReadAt.IsZero()
		note.ReadAt, note.AwaySince, note.GivenUp = fact.At, time.Time{}, false
		note.OldestXmin = c.oldestMirror(fact.Value).Or(0)
		if !note.Known && !c.fresh && c.ofAnotherStore(fact.Value) {
			c.strangers = append(c.strangers, name)
		}
		note.Known, note.StreamSlot = true, fact.Value.Node.PrimarySlotName
		note.Replay, note.SyncSlots = fact.Value.Node.Replay.Or(0), fact.Value.Node.SyncSlots
		note.HeldForAll = fact.Value.Node.HeldForAllSince.Or(note.HeldForAll)
		c.m.Standbys[name] = note
		delete(c.m.Forgotten, name)
	}
}

// ofAnotherStore reports whether a node has mirrors that a controller with another
// etcd made. The first read of a ledger believes what it finds, for then the holds
// are those of the other controller; what comes later they have not waited for, and
// generations say nothing: they may have begun anew since.
func (c *cycle) ofAnotherStore(read NodeRead) bool {
	return slices.ContainsFunc(read.Slots, func(s cluster.Slot) bool { return c.isMirror(s) && s.Marker.Store != c.m.Store })
}

// oldestMirror is the oldest catalog_xmin of a node's mirrors of ours.
func (c *cycle) oldestMirror(read NodeRead) cluster.Opt[cluster.XID] {
	var xs []cluster.XID
	for _, s := range read.Slots {
		if c.isMirror(s) {
			xs = append(xs, s.CatalogXmin.Or(0))
		}
	}
	return cluster.OldestXID(xs...)
}

func (c *cycle) noteAway(name string, note NodeNote) {
	if note.AwaySince.IsZero() {
		note.AwaySince = c.now
	}
	if !note.GivenUp && c.holdsBack(note) && (c.m.Forgotten[name] || c.now.Sub(note.AwaySince) > c.p.MaxHoldAge) {
		note.GivenUp = true
		c.giveUp = append(c.giveUp, name)
	}
	c.m.Standbys[name] = note
}

// holdsBack reports whether a member that is away keeps the holds from rising:
// mirrors of it are known, or it was never read under this leadership.
func (c *cycle) holdsBack(note NodeNote) bool {
	return note.ReadAt.IsZero() || note.OldestXmin.Normal()
}

// readable gives the read of a standby that is of this cluster and in recovery.
func (c *cycle) readable(name string) (NodeRead, bool) {
	fact, ok := c.o.Nodes[name]
	if !ok || !fact.OK() || fact.Value.Node.SystemID != c.lead.systemID || !fact.Value.Node.InRecovery {
		return NodeRead{}, false
	}
	return fact.Value, true
}

// writable reports whether steps may be sent to a standby: it replays the
// primary's timeline and no other controller has put its fence there.
func (c *cycle) writable(name string) bool {
	read, ok := c.readable(name)
	return ok && read.Node.Timeline == c.lead.read.Node.Timeline && c.fenceTrouble(name) == ""
}
