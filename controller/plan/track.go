package plan

import (
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// trackSlots takes this read's selected slots, remembers what changed in them,
// and counts the reads in which others were absent.
func (c *cycle) trackSlots() {
	present := map[string]bool{}
	for _, s := range sortedSlots(c.lead.read.Slots) {
		selected := c.p.Selected(s)
		if !selected && c.tookThePlace(s.Name) {
			continue
		}
		present[s.Name] = true
		if !selected && !c.m.Slots[s.Name].Unproven {
			delete(c.m.Slots, s.Name) // no longer selected: not judged, its mirrors stay while they are protected
		}
		if (selected || c.isMirror(s)) && c.isUnproven(s) {
			c.noteUnproven(s)
			continue
		}
		if !selected {
			continue
		}
		t := c.track(s)
		if !c.aside(&t) {
			c.keep(&t)
		}
		c.slots = append(c.slots, &t)
		c.tracks[s.Name] = &t
	}
	c.countAbsent(present)
}

// tookThePlace: a slot that is none to be mirrored, as a physical one, stands on a new
// primary under the name of one that is, which did not come through.
func (c *cycle) tookThePlace(name string) bool {
	note, known := c.m.Slots[name]
	missing := c.successor || note.LostWith == c.m.Timeline
	return known && missing && !note.Unproven && note.Plugin != "" && c.p.wants(name, note.Database, note.Plugin)
}

func sortedSlots(slots []cluster.Slot) []cluster.Slot {
	sorted := slices.Clone(slots)
	slices.SortFunc(sorted, func(a, b cluster.Slot) int { return compareStrings(a.Name, b.Name) })
	return sorted
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// learnHighest takes from mirrors what an earlier leader saw and its ledger does
// not say: a slot that a crash took back, and a mirror stands where it has been, unless
// somebody uses that one. Where no slot can have gone back, a mirror that is beyond
// was moved by somebody.
func (c *cycle) learnHighest(t *tracked) {
	if c.m.Steady.Or(false) {
		return
	}
	for _, name := range c.standbys {
		if _, ok := c.readable(name); !ok || !c.firsts[name] {
			continue
		}
		s := c.slotOn(name, t.slot.Name)
		if s == nil || !c.isMirror(*s) || s.ActivePID != 0 || !t.lineage(s.Marker.Source) {
			continue
		}
		if s.Marker.Timeline < c.m.Timeline {
			t.note.Before = max(t.note.Before, s.Confirmed.Or(0))
		} else {
			t.note.HighestF = max(t.note.HighestF, s.Confirmed.Or(0))
		}
	}
}

// countAbsent notes what is not on the primary: slots known before, and those
// of which a standby has a mirror.
func (c *cycle) countAbsent(present map[string]bool) {
	mirrored := c.mirroredNames()
	names := maps.Clone(mirrored)
	for name := range c.m.Slots {
		names[name] = true
	}
	for name := range names {
		if present[name] {
			continue
		}
		note := c.m.Slots[name]
		if (c.successor || note.Unproven) && note.Plugin != "" && c.p.wants(name, note.Database, note.Plugin) {
			note.LostWith = c.m.Timeline
		}
		note.Unproven = false
		if c.readAt.After(note.AbsentAt) {
			note.AbsentReads, note.AbsentAt = note.AbsentReads+1, c.readAt
		}
		c.m.Slots[name] = note
		if note.AbsentReads > absentReads && !mirrored[name] && note.LostWith != c.m.Timeline {
			delete(c.m.Slots, name)
		}
	}
}

// mirroredNames are the names of the mirrors seen on any standby.
func (c *cycle) mirroredNames() map[string]bool {
	names := map[string]bool{}
	for _, node := range c.standbys {
		read, ok := c.readable(node)
		for _, s := range read.Slots {
			if ok && c.removable(s) {
				names[s.Name] = true
			}
		}
	}
	return names
}
