package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// decoder says why a consumer could not go on from a standby's slot if that
// standby were promoted, "" where it could: every transaction that was not
// confirmed comes out whole, with the columns that it had.
func (w *world) decoder(node, name string) string {
	s := w.servers[node]
	m := s.slots[name]
	if m == nil {
		return "it is not there"
	}
	at, ok := m.Position()
	if !ok {
		return fmt.Sprintf("it has no position (%s)", m.Invalidated)
	}
	id := w.origin[m.Incarnation.Birth.V]
	switch p := w.primary(); {
	case at.Confirmed > s.node.Replay.V:
		return fmt.Sprintf("%s is not replayed, that ends at %s", at.Confirmed, s.node.Replay.V)
	case !s.has(w.placed[m.Incarnation.Birth.V]):
		return fmt.Sprintf("it was put to %+v, which timeline %d does not contain (%v)", w.placed[m.Incarnation.Birth.V], s.node.Timeline, s.node.History)
	case at.Confirmed > w.confirmed(id, s):
		return fmt.Sprintf("it is at %s, beyond all that was confirmed (%s)", at.Confirmed, w.confirmed(id, s))
	case p != nil && p.slots[name] != nil && w.origin[p.slots[name].Incarnation.Birth.V] != id:
		return "it is a copy of another slot"
	case at.Restart < s.walFrom:
		return fmt.Sprintf("WAL from %s is gone, what there is begins at %s", at.Restart, s.walFrom)
	case !w.consistent(s, *m, at):
		return fmt.Sprintf("nothing makes a decoder consistent between %s and %s", at.Restart, at.Confirmed)
	}
	removed := s.removed
	if p := w.primary(); p != nil && removed.Precedes(p.removed) {
		removed = p.removed // it will be replayed
	}
	need := w.needs(id, at.CatalogXmin)
	if !removed.NotAfter(need) {
		return fmt.Sprintf("rows from %s on are needed, those of before %s are gone", need, removed)
	}
	return w.missed(s, at.Restart, need)
}

// has reports whether a place is on the server's way through the timelines.
func (s *server) has(at place) bool {
	if at.timeline == s.node.Timeline {
		return true
	}
	for _, fork := range s.node.History {
		if fork.Timeline == at.timeline {
			return at.at <= fork.LSN
		}
	}
	return false
}

// confirmed is the highest position that the slot's consumer had confirmed on the
// server's way through the timelines.
func (w *world) confirmed(id uint64, s *server) cluster.LSN {
	top := w.highest[id][s.node.Timeline]
	for _, fork := range s.node.History {
		top = max(top, min(w.highest[id][fork.Timeline], fork.LSN))
	}
	return top
}

// needs is from where on a slot needs catalog rows: its catalog_xmin, or what it
// began with, for a newborn slot inherits an older one that says nothing.
func (w *world) needs(id uint64, x cluster.XID) cluster.XID {
	if born := w.born[id]; x.Precedes(born) {
		return born
	}
	return x
}

// consistent: the snapshot file at exactly restart_lsn, one after it of which is
// known that it does, or a moment at which no transaction was open.
func (w *world) consistent(s *server, m cluster.Slot, at cluster.Position) bool {
	if m.Snapshot == cluster.SnapshotValid && s.files[at.Restart] {
		return true
	}
	if later, ok := s.later[at.Restart]; ok && s.files[later] {
		return true
	}
	return w.quiet(at.Restart, at.Confirmed)
}

// quiet reports whether there is a position from which no transaction was open,
// from restart_lsn on and before confirmed_flush_lsn.
func (w *world) quiet(restart, confirmed cluster.LSN) bool {
	for l := restart; l < confirmed; {
		busy := false
		for _, t := range w.open {
			if t.from <= l && (t.to == 0 || l < t.to) {
				if t.to == 0 {
					return false
				}
				l, busy = t.to, true
			}
		}
		if !busy {
			return true
		}
	}
	return false
}
