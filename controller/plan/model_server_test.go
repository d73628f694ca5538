package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// write makes WAL; standbys replay it all unless lag says otherwise.
func (w *world) write(bytes cluster.LSN) {
	p := w.primary()
	p.node.Insert = cluster.Some(p.node.Insert.V + bytes)
	p.node.Flush = p.node.Insert
	w.nextXID = normal(w.nextXID + 1)
	for _, s := range w.servers {
		s.node.NextXID = w.nextXID
	}
}

// receive brings WAL to a standby that it does not replay yet.
func (w *world) receive(name string, upto cluster.LSN) {
	n := &w.servers[name].node
	n.Receive = cluster.Some(max(n.Receive.V, upto))
}

func (w *world) replay(name string, upto cluster.LSN) {
	s := w.servers[name]
	if !s.node.InRecovery || upto <= s.node.Replay.V {
		return
	}
	w.receive(name, upto)
	if s.paused {
		return
	}
	s.node.Replay = cluster.Some(upto)
	if p := w.primary(); p != nil && p.node.Timeline == s.node.Timeline {
		s.removed, s.pruned = p.removedBy(upto, s.removed, s.pruned)
		for _, slot := range s.slots { // a conflict of recovery
			if slot.Synced && !s.removed.NotAfter(slot.CatalogXmin.V) {
				slot.Invalidated = "rows_removed"
			}
		}
	}
}

// removedBy is from where on rows are there still for one who has replayed upto.
func (s *server) removedBy(upto cluster.LSN, removed, pruned cluster.XID) (rows, one cluster.XID) {
	for _, v := range s.vacuums {
		if v.at <= upto {
			removed, pruned = laterXID(removed, v.removed), laterXID(pruned, v.pruned)
		}
	}
	return removed, pruned
}

func (w *world) replayAll() {
	p := w.primary()
	for name, s := range w.servers {
		if s.up && s.node.InRecovery && s.node.Timeline == p.node.Timeline {
			w.replay(name, p.node.Insert.V)
		}
	}
}

func (s *server) oldest() cluster.Opt[cluster.XID] {
	var xs []cluster.XID
	for _, slot := range s.slots {
		if slot.Invalidated == "" {
			xs = append(xs, slot.EffectiveCatalogXmin.Or(0))
		}
	}
	return cluster.OldestXID(xs...)
}

// vacuum removes catalog rows that no slot of the primary pins.
func (w *world) vacuum() {
	p := w.primary()
	upto := p.oldest().Or(w.nextXID)
	if p.removed.Precedes(upto) {
		p.removed = upto
	}
	p.node.Insert = cluster.Some(p.node.Insert.V + 0x10)
	p.node.Flush = p.node.Insert
	p.vacuums = append(p.vacuums, vacuum{p.node.Insert.V, p.removed, p.pruned})
}

// end is how far a server's WAL reaches.
func (s *server) end() cluster.LSN {
	if s.node.InRecovery {
		return s.node.Replay.V
	}
	return s.node.Insert.V
}

// checkpoint saves the slots and takes WAL and files that no slot pins; beyond
// the limit also what they pin.
func (s *server) checkpoint() {
	oldest, oldestLogical := s.end(), s.end()
	for name, slot := range s.slots {
		r := slot.Restart.Or(0)
		if s.keep != 0 && r != 0 && r+s.keep < s.end() && slot.ActivePID == 0 {
			slot.Invalidated, slot.Restart = "wal_removed", cluster.None[cluster.LSN]()
			r = 0
		}
		if r != 0 {
			oldest = min(oldest, r)
		}
		if r != 0 && slot.Kind == cluster.Logical {
			oldestLogical = min(oldestLogical, r)
		}
		s.save(name)
	}
	s.walFrom = max(s.walFrom, oldest)
	for at := range s.files {
		if at < oldestLogical {
			delete(s.files, at)
		}
	}
}

// save writes a slot to disk, and reports whether it could.
func (s *server) save(name string) bool {
	slot := s.slots[name]
	slot.Saved = !s.full
	if !s.full {
		s.disk[name] = *slot
	}
	return !s.full
}

// crash takes the slots back to what was saved, and ends all sessions.
func (s *server) crash() {
	for name, slot := range s.slots {
		if was, ok := s.disk[name]; ok && was.Incarnation == slot.Incarnation {
			marker := slot.Marker
			*slot = was
			slot.Marker, slot.Saved, slot.ActivePID = marker, true, 0
		}
	}
	s.node.Started = s.node.Started.Add(time.Second)
	s.sessions = nil
}

// promote ends the old primary and makes a standby the new one, whose sessions go on.
func (w *world) promote(name string) {
	old := w.primary()
	if old != nil {
		old.up = false
	}
	s := w.servers[name]
	fork := s.node.Replay.V
	s.node.History = append(slices.Clone(s.node.History), cluster.Fork{Timeline: s.node.Timeline, LSN: fork})
	next := s.node.Timeline
	for _, other := range w.servers {
		next = max(next, other.node.Timeline)
	}
	s.node.InRecovery, s.node.Timeline, s.paused = false, next+1, false
	s.node.Insert, s.node.Flush = cluster.Some(fork+0x100), cluster.Some(fork+0x100)
	s.node.Receive, s.node.Replay = cluster.None[cluster.LSN](), cluster.None[cluster.LSN]()
	s.vacuums = nil
	for n, other := range w.servers {
		if n != name && other.up && other.node.InRecovery && other.node.Replay.V <= fork {
			other.node.Timeline, other.node.History = s.node.Timeline, s.node.History
			other.node.Receive = other.node.Replay
		}
	}
}

// rejoin makes the dead primary a standby, as pg_rewind does: what the fork has
// left behind is gone, its slots stay. WAL and what is in it come from the new primary.
func (w *world) rejoin(s *server) {
	p := w.primary()
	if p == nil || s == p || s.up && s.node.Timeline == p.node.Timeline {
		return
	}
	s.up = true
	s.node.InRecovery, s.node.Timeline, s.node.History = true, p.node.Timeline, p.node.History
	s.node.Insert, s.node.Flush = cluster.None[cluster.LSN](), cluster.None[cluster.LSN]()
	s.node.Replay, s.node.Receive = p.node.Insert, p.node.Insert
	s.node.Fence = cluster.None[cluster.Fence]()
	s.removed, s.pruned, s.vacuums, s.walFrom, s.sessions = p.removed, p.pruned, nil, p.walFrom, nil
	maps.DeleteFunc(s.files, func(at cluster.LSN, _ bool) bool { return at > forkOf(s.node, parentTimeline(s.node)) })
}
