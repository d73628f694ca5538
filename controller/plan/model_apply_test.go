package plan

import (
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// apply follows the extension's apply() for one change.
func (w *world) apply(s *server, step Step, ch cluster.Change) cluster.Outcome {
	row := cluster.Outcome{Name: ch.Name}
	answer := func(code cluster.Code) cluster.Outcome { row.Code = code; return row }
	if said, ok := w.answer[step.Node]; ok {
		said.Name = ch.Name
		return said
	}
	slot := s.slots[ch.Name]
	if slot != nil && (slot.Kind != cluster.Logical || slot.Marker == nil) {
		return answer(cluster.CodeNotOurs)
	}
	h := s.slots[cluster.HoldName]
	switch {
	case !s.node.InRecovery:
		return answer(cluster.CodeNotInRecovery)
	case s.node.WalLevel != "logical":
		return answer(cluster.CodeWalLevel)
	case s.node.Replay.V < ch.Position.Confirmed:
		return answer(cluster.CodeAheadOfReplay)
	case h == nil || h.Restart.OK || !h.EffectiveCatalogXmin.Or(0).NotAfter(ch.Position.CatalogXmin):
		return answer(cluster.CodeNotPinned)
	case slot != nil && slot.ActivePID != 0:
		return answer(cluster.CodeInUse)
	}
	if ch.Position.Restart < s.walFrom {
		return answer(cluster.CodeWALMissing)
	}
	if !w.proves(ch) {
		return answer(cluster.CodeNoConsistentPoint)
	}
	code := cluster.CodeMade
	if slot != nil {
		code = cluster.CodeMoved
		at, _ := slot.Position()
		switch {
		case slot.Plugin != ch.Plugin || slot.Invalidated != "" || w.pastFork(s, *slot),
			slot.Marker.Kind == cluster.MarkMirror && slot.Marker.Timeline == step.Fence.Timeline && !slot.Marker.Source.Same(ch.Source):
			code = cluster.CodeReplaced
		case ch.Position.Behind(at):
			return answer(cluster.CodeBackward)
		case ch.Position == at:
			code = cluster.CodeUnchanged
		}
	}
	if code == cluster.CodeMade && len(s.slots) >= s.node.MaxSlots {
		return answer(cluster.CodeNoFreeSlot)
	}
	if code == cluster.CodeMade || code == cluster.CodeReplaced {
		if w.endangered(s, ch.Position) {
			delete(s.slots, ch.Name) // what was to be replaced is gone by now
			return answer(cluster.CodeOldSession)
		}
		slot = &cluster.Slot{Name: ch.Name, Kind: cluster.Logical, Incarnation: w.incarnation()}
		s.slots[ch.Name] = slot
	}
	was, _ := slot.Position()
	way := "nothing_running"
	switch {
	case ch.SnapshotAt.OK:
		way = laterFile
	case ch.Snapshot.OK:
		way = "file"
	}
	p := ch.Position
	slot.Plugin, slot.Database, slot.DatabaseOID, slot.TwoPhase = ch.Plugin, "shop", ch.DatabaseOID, ch.TwoPhase
	slot.TwoPhaseAt = ch.TwoPhaseAt
	slot.Restart, slot.Confirmed, slot.CatalogXmin, slot.EffectiveCatalogXmin = cluster.Some(p.Restart), cluster.Some(p.Confirmed), cluster.Some(p.CatalogXmin), cluster.Some(p.CatalogXmin)
	slot.WALok, slot.Saved, slot.Snapshot = true, true, cluster.SnapshotAbsent
	slot.Marker = marker(cluster.MarkMirror, step.Fence, h.Marker.Generation, ch.Source, way)
	switch {
	case ch.SnapshotAt.OK:
		slot.Snapshot, slot.Marker.Witness = cluster.SnapshotValid, ch.SnapshotAt
		s.later[p.Restart] = ch.SnapshotAt.V
		s.files[ch.SnapshotAt.V] = true
	case ch.Snapshot.OK:
		slot.Snapshot = cluster.SnapshotValid
		s.files[p.Restart] = true
	}
	if was.Restart != p.Restart || was.CatalogXmin != p.CatalogXmin {
		s.save(ch.Name)
	}
	w.origin[slot.Incarnation.Birth.V] = w.origin[ch.Source.Birth.V]
	w.placed[slot.Incarnation.Birth.V] = place{s.node.Timeline, p.Confirmed}
	row.Mirror, row.Way = cluster.Some(p), way
	return answer(code)
}

// proves: by a file, or because nothing runs at some point before it.
func (w *world) proves(ch cluster.Change) bool {
	if w.provable != nil {
		return w.provable(ch)
	}
	return ch.Snapshot.OK || w.quiet(ch.Position.Restart, ch.Position.Confirmed)
}

func (w *world) pastFork(s *server, slot cluster.Slot) bool { return pastFork(slot, s.node) }

// mirrors are the names of a server's mirrors.
func (s *server) mirrors() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.slots)) {
		if m := s.slots[name].Marker; m != nil && m.Kind == cluster.MarkMirror {
			names = append(names, name)
		}
	}
	return names
}
