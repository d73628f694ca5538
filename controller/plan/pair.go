package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// pair is a selected slot and a standby, and what was found of them.
type pair struct {
	t      *tracked
	node   string
	fact   Fact[NodeRead]
	read   bool           // fact is an answer of a standby of this cluster
	server bool           // the server's own worker keeps the slot there
	there  *cluster.Slot  // the slot of that name on the standby
	mirror *cluster.Slot  // there, where it is a mirror of ours
	prot   protection     // of mirror
	note   PairNote       // of the cycle before
	noRoom bool           // the standby has no slot free for it
	best   int            // index in t.kept of the newest read it has replayed, -1 for none
	change cluster.Change // to be sent where send is true
	send   bool
	touch  bool   // it is taken in hand so that it does not count as idle
	stamp  bool   // its marker needs the new generation
	drop   string // why the mirror is to be dropped, "" where it is not

	verdict   Verdict
	unstamped bool // all but its generation is well: SAFE once it is stamped
}

// makePairs looks at each selected slot on each standby, slots by name.
func (c *cycle) makePairs() {
	for _, node := range c.standbys {
		for _, t := range c.slots {
			c.pairs = append(c.pairs, c.newPair(t, node))
		}
		c.shareRoom(node)
	}
	for _, pr := range c.pairs {
		if pr.mirror != nil && !c.replaces(pr) {
			pr.noteMoved(pr.t.note, true)
		} else if pr.read {
			pr.note.Moved, pr.note.Used = false, false
		}
		c.removal(pr)
		c.propose(pr)
		c.touch(pr)
		if pr.read && pr.t.located {
			pr.note.noteOutrun(pr.t.note.HighestF, c.readAt, received(pr.fact.Value.Node))
		}
		c.judge(pr)
	}
}

func (c *cycle) newPair(t *tracked, node string) *pair {
	pr := &pair{t: t, node: node, fact: c.o.Nodes[node], best: -1, note: c.m.Pairs[Pair{Slot: t.slot.Name, Standby: node}]}
	pr.server = c.serverKeeps(t, node)
	read, ok := c.readable(node)
	if !ok {
		return pr
	}
	pr.read = true
	pr.there = c.slotOn(node, t.slot.Name)
	if pr.server || c.m.Aside[t.slot.Name] {
		return pr
	}
	if pr.there != nil && c.isMirror(*pr.there) {
		pr.mirror = pr.there
		pr.prot = c.protectionOf(t, node, *pr.mirror)
		pr.stamp = (pr.prot == protWitnessed || pr.prot == protContinuous) && pr.mirror.Marker.Generation != c.m.Generation
		if pr.prot == protWitnessed {
			c.want(t, pr.mirror.CatalogXmin.V)
		}
	}
	if read.Node.Replay.OK {
		pr.best = newestReplayed(t.kept, read.Node.Replay.V)
	}
	return pr
}

// mine gives the pairs of one standby, slots by name.
func (c *cycle) mine(node string) []*pair {
	var own []*pair
	for _, pr := range c.pairs {
		if pr.node == node {
			own = append(own, pr)
		}
	}
	return own
}

// writable reports whether something may be written for the pair at all.
func (c *cycle) canWrite(pr *pair) bool {
	return pr.read && c.writable(pr.node) && c.fenceTrouble(c.lead.primary) == "" && c.hold.state != holdUnsettled
}
