package plan

import (
	"fmt"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// maxAncestors bounds what is remembered of a slot's way through promotions.
const maxAncestors = 8

// tracked is a selected slot of the primary in this cycle.
type tracked struct {
	slot      cluster.Slot
	pos       cluster.Position
	located   bool // pos is there
	failover  bool // the server's own workers keep it, where they run
	held      bool // it reports less than it did: no change is sent
	recreated bool
	kept      []Kept
	note      SlotNote
}

// track compares a slot with what is remembered of it. successor: this is the
// first read of a new primary, where a slot is another directory by nature.
func (c *cycle) track(s cluster.Slot) tracked {
	t := tracked{slot: s}
	t.pos, t.located = s.Position()
	note, known := c.m.Slots[s.Name]
	before := note
	note.AbsentReads, note.LostWith, note.Unproven = 0, 0, false
	switch {
	case !known:
		note = SlotNote{Incarnation: s.Incarnation}
	case c.successor:
		note = succeed(note, s)
		if !c.descends(before, note, s) {
			note = c.recreated(&t, before)
		}
	case isRecreated(note, s):
		note = c.recreated(&t, note)
	case c.restarted:
		note.Before = max(note.Before, note.HighestF) // for the next leader, whose ledger has the one at once
	}
	if known && note.TwoPhase != s.TwoPhase {
		delete(c.m.Kept, s.Name) // a read of before that says nothing of two_phase_at
	}
	note.Incarnation, note.Database, note.Plugin, note.TwoPhase = s.Incarnation, s.Database, s.Plugin, s.TwoPhase
	if sent, ok := c.sent(s.Name); ok {
		note.HighestSent = max(note.HighestSent, sent)
	}
	t.note = note
	c.noteFailover(&t, known)
	c.learnHighest(&t)
	c.noteAhead(&t, before, known)
	t.noteUse(c.readAt, before)
	c.advance(&t)
	return t
}

// isRecreated: an inode is reused at once, so the birth time counts too; without
// one, only what is seldom changed in a slot tells. Two-phase is: the subscriber
// turns it on when its tables are copied. A database may be renamed under its
// slots, which is nothing new where the directory is known to be the same.
func isRecreated(note SlotNote, s cluster.Slot) bool {
	if !note.Incarnation.Same(s.Incarnation) {
		return true
	}
	if note.Plugin != "" && note.Plugin != s.Plugin {
		return true
	}
	born := note.Incarnation.Birth.OK && s.Incarnation.Birth.OK
	return !born && note.Database != "" && s.Database != "" && note.Database != s.Database
}

// succeed carries a note over to a new primary's slot of the same name.
func succeed(note SlotNote, s cluster.Slot) SlotNote {
	note.Ancestors = append(append([]cluster.Incarnation(nil), note.Ancestors...), note.Incarnation)
	if s.Marker != nil && s.Marker.Source.Inode != 0 && !contains(note.Ancestors, s.Marker.Source) {
		note.Ancestors = append(note.Ancestors, s.Marker.Source)
	}
	if extra := len(note.Ancestors) - maxAncestors; extra > 0 {
		note.Ancestors = note.Ancestors[extra:]
	}
	note.Before = max(note.Before, note.HighestF)
	note.HighestF, note.Last = 0, cluster.None[cluster.Position]()
	return note
}

// descends reports whether a new primary's slot goes back to the one known
// before: it was a mirror, or an original, with our marker, a copy of the
// server's own, or the directory is one seen earlier. Any other was made by
// somebody else. before is the note before the promotion.
func (c *cycle) descends(before, note SlotNote, s cluster.Slot) bool {
	seen := s.Incarnation.Birth.OK && contains(note.Ancestors, s.Incarnation)
	copied := s.Synced || note.Failover && s.Failover && c.m.Standbys[c.lead.primary].SyncSlots
	if !seen && !copied && !c.ours(s) {
		return false
	}
	renamed := before.witnessed(s.Incarnation) || s.Marker != nil && before.witnessed(s.Marker.Source)
	return (note.Plugin == "" || note.Plugin == s.Plugin) &&
		(note.Database == "" || s.Database == "" || note.Database == s.Database || renamed)
}

// witnessed: it is the very slot that was read under this name, here or on an earlier
// primary. That it, or a mirror of it, is in another database now means that this was
// renamed: one that is dropped takes its slots along, on standbys too.
func (n SlotNote) witnessed(one cluster.Incarnation) bool {
	same := func(known cluster.Incarnation) bool { return exactlySame(one, known) }
	return one.Birth.OK && (same(n.Incarnation) || slices.ContainsFunc(n.Ancestors, same))
}

func (c *cycle) recreated(t *tracked, old SlotNote) SlotNote {
	t.recreated = true
	delete(c.m.Kept, t.slot.Name)
	c.forgetResume(t.slot.Name)
	c.condition(Condition{Code: CondSlotRecreated, Subject: t.slot.Name, Severity: Warning,
		Message: fmt.Sprintf("slot %s on %s was dropped and created again: it was in database %s with plugin %s at %s, it is in database %s with plugin %s at %s",
			t.slot.Name, c.lead.primary, orUnknown(old.Database), orUnknown(old.Plugin), lastText(old), orUnknown(t.slot.Database), t.slot.Plugin, lsnText(t.slot.Confirmed)),
		Hint: "its mirrors are replaced; a consumer of the old slot must start anew"})
	return SlotNote{}
}

// advance takes the position into the note, or finds that it went backward: a
// crash takes an unsaved confirmed_flush_lsn back.
func (c *cycle) advance(t *tracked) {
	if !t.located {
		return
	}
	n := &t.note
	if n.Last.OK && t.pos.Behind(n.Last.V) || t.pos.Confirmed < n.HighestF {
		t.held = true
		return
	}
	n.noteRestart(c.readAt, t.pos)
	n.Last, n.LastAt, n.TwoPhaseAt = cluster.Some(t.pos), c.readAt, t.slot.TwoPhaseAt
	n.HighestF = t.pos.Confirmed
}

// lineage reports whether a mirror's source is this slot, here or on an earlier primary.
func (t tracked) lineage(source cluster.Incarnation) bool {
	return source.Same(t.slot.Incarnation) || contains(t.note.Ancestors, source)
}

func contains(list []cluster.Incarnation, one cluster.Incarnation) bool {
	for _, i := range list {
		if i.Same(one) {
			return true
		}
	}
	return false
}

func (c *cycle) forgetResume(slot string) {
	for p, n := range c.m.Pairs {
		if p.Slot == slot {
			n.Resume, n.Tried = "", Tried{}
			c.m.Pairs[p] = n
		}
	}
}
