package plan

import (
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// do is the extension: one call on one server.
func (w *world) do(step Step) []cluster.Outcome {
	s := w.servers[step.Node]
	if !s.up {
		panic("a step on a server that is down: " + step.ID)
	}
	var rows []cluster.Outcome
	if step.Kind == StepFence {
		rows = []cluster.Outcome{{Code: s.raiseFence(step.Fence)}}
	} else if code := s.refusal(step.Fence); code != "" {
		rows = []cluster.Outcome{{Name: cluster.HoldName, Code: code}}
	} else {
		switch step.Kind {
		case StepMark:
			rows = s.mark(step)
		case StepHold:
			rows = w.holdCall(s, step)
		case StepStamp:
			rows = s.stamp(step)
		case StepApply:
			for _, ch := range step.Changes {
				rows = append(rows, w.apply(s, step, ch))
			}
		case StepDrop:
			rows = s.drop(step)
		case StepFailover:
			rows = s.setFailover(step)
		case StepGate:
			if w.denied != "" {
				rows = []cluster.Outcome{{Code: cluster.CodeNoPrivilege, Detail: w.denied, Hint: "grant it"}}
				break
			}
			s.node.SynchronizedStandbySlots = slices.Clone(step.Names)
			rows = []cluster.Outcome{{Code: cluster.CodeSet}}
		}
	}
	for i := range rows {
		rows[i].Node = step.Node
	}
	return rows
}

func (s *server) raiseFence(f cluster.Fence) cluster.Code {
	old := s.node.Fence
	if old.OK && (old.V.Scope != f.Scope || old.V.Store != f.Store) {
		return cluster.CodeForeignEpoch
	}
	if old.OK && old.V.Epoch > f.Epoch {
		return cluster.CodeFenced
	}
	s.node.Fence = cluster.Some(f)
	return "raised"
}

func (s *server) refusal(f cluster.Fence) cluster.Code {
	switch old := s.node.Fence; {
	case !old.OK || old.V.Epoch > f.Epoch:
		return cluster.CodeFenced
	case old.V.Scope != f.Scope || old.V.Store != f.Store:
		return cluster.CodeForeignEpoch
	}
	if f.Timeline != s.node.Timeline {
		return cluster.CodeTimelineMismatch
	}
	return ""
}

func marker(kind cluster.MarkerKind, f cluster.Fence, generation int64, source cluster.Incarnation, way string) *cluster.Marker {
	return &cluster.Marker{Version: 1, Kind: kind, Scope: f.Scope, Store: f.Store, SystemID: f.SystemID, Timeline: f.Timeline, Generation: generation, Source: source, Way: way}
}

func (s *server) mark(step Step) (rows []cluster.Outcome) {
	for i, name := range step.Names {
		slot := s.slots[name]
		if slot == nil || !slot.Incarnation.Same(step.Incarnations[i]) {
			rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeRetry})
			continue
		}
		slot.Marker = marker(cluster.MarkOriginal, step.Fence, 0, slot.Incarnation, "")
		rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeMarked})
	}
	return rows
}

func (s *server) stamp(step Step) (rows []cluster.Outcome) {
	for _, name := range step.Names {
		slot := s.slots[name]
		if slot == nil || slot.Marker == nil || slot.Marker.Kind != cluster.MarkMirror {
			rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeNotOurs})
			continue
		}
		slot.Marker.Generation = step.Generation
		rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeMarked})
	}
	return rows
}

func (s *server) drop(step Step) (rows []cluster.Outcome) {
	for _, name := range step.Names {
		slot := s.slots[name]
		switch {
		case slot == nil:
			rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeUnchanged})
		case slot.Marker == nil:
			rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeNotOurs})
		case slot.ActivePID != 0:
			rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeInUse})
		default:
			delete(s.slots, name)
			rows = append(rows, cluster.Outcome{Name: name, Code: cluster.CodeDropped})
		}
	}
	return rows
}

// holdCall follows the extension's hold(): what was pinned stays or is witnessed,
// the result is the oldest of what is wanted and of the mirrors of this node. It
// is lowered in memory first, and raised on disk first.
func (w *world) holdCall(s *server, step Step) (rows []cluster.Outcome) {
	if step.WAL.OK {
		rows = append(rows, w.walHold(s, step))
	}
	h := s.slots[cluster.HoldName]
	var pinned cluster.XID
	if h == nil {
		if s.full {
			return append(rows, refuseWants(step, cluster.CodeSaveFailed)...)
		}
		h = w.newHold(s)
	} else {
		used := h.Restart.OK || h.Xmin.OK
		if step.Generation < h.Marker.Generation || used && step.Generation == h.Marker.Generation {
			return append(rows, refuseWants(step, cluster.CodeNotPinned)...)
		}
		if used && s.full {
			return append(rows, refuseWants(step, cluster.CodeSaveFailed)...)
		}
		if used {
			h = w.newHold(s)
		}
		pinned = h.CatalogXmin.Or(0)
	}
	target, answers := w.holdTarget(s, step, pinned)
	raises := target.OK && pinned.Precedes(target.V)
	if s.full && (raises || h.Marker == nil || h.Marker.Generation != step.Generation) {
		return append(rows, refuseWants(step, cluster.CodeSaveFailed)...)
	}
	h.Marker = marker(cluster.MarkHold, step.Fence, step.Generation, cluster.Incarnation{}, "")
	if target.OK {
		h.CatalogXmin, h.EffectiveCatalogXmin = target, target
	}
	if !s.save(cluster.HoldName) {
		return append(rows, refuseWants(step, cluster.CodeSaveFailed)...)
	}
	return append(rows, answers...)
}

func (w *world) newHold(s *server) *cluster.Slot {
	h := &cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical, Incarnation: w.incarnation(), Saved: true, WALok: true}
	s.slots[cluster.HoldName] = h
	return h
}

func (w *world) holdTarget(s *server, step Step, pinned cluster.XID) (target cluster.Opt[cluster.XID], answers []cluster.Outcome) {
	older := func(x cluster.XID) { target = cluster.OldestXID(target.Or(0), x) }
	for _, slot := range s.slots {
		if slot.Marker != nil && slot.Marker.Kind == cluster.MarkMirror {
			older(slot.CatalogXmin.Or(0))
		}
	}
	for _, want := range step.Wants {
		name, ok := want.Slot, pinned.NotAfter(want.CatalogXmin)
		if name == "" {
			name = cluster.HoldName
		} else if !ok {
			slot := s.slots[want.Slot]
			ok = s.node.InRecovery || slot != nil && slot.Invalidated == "" && slot.Incarnation.Same(want.Source) && slot.EffectiveCatalogXmin.Or(0).NotAfter(want.CatalogXmin)
		}
		row := cluster.Outcome{Name: name, Code: cluster.CodeNotPinned}
		if ok {
			older(want.CatalogXmin)
			row.Code = cluster.CodeHeld
		}
		answers = append(answers, row)
	}
	if len(step.Wants) == 0 {
		answers = []cluster.Outcome{{Name: cluster.HoldName, Code: cluster.CodeHeld}}
		older(pinned)
	}
	return target, answers
}

func refuseWants(step Step, code cluster.Code) (rows []cluster.Outcome) {
	for _, want := range step.Wants {
		name := want.Slot
		if name == "" {
			name = cluster.HoldName
		}
		rows = append(rows, cluster.Outcome{Name: name, Code: code})
	}
	if len(rows) == 0 {
		rows = []cluster.Outcome{{Name: cluster.HoldName, Code: code}}
	}
	return rows
}

func (w *world) walHold(s *server, step Step) cluster.Outcome {
	row := cluster.Outcome{Name: cluster.WALHoldName, Code: cluster.CodeHeld}
	if step.WAL.V == 0 {
		delete(s.slots, cluster.WALHoldName)
		row.Code = cluster.CodeDropped
		return row
	}
	if !s.node.InRecovery {
		panic("a WAL hold on a primary")
	}
	s.slots[cluster.WALHoldName] = &cluster.Slot{
		Name: cluster.WALHoldName, Kind: cluster.Physical, Restart: step.WAL, Saved: true, WALok: true, Incarnation: w.incarnation(),
		Marker: marker(cluster.MarkWAL, step.Fence, step.Generation, cluster.Incarnation{}, ""),
	}
	return row
}

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

// setFailover is ALTER_REPLICATION_SLOT, which waits for a consumer's end.
func (s *server) setFailover(step Step) (rows []cluster.Outcome) {
	for _, name := range step.Names {
		row := cluster.Outcome{Name: name, Code: cluster.CodeSet}
		if s.slots[name] == nil || s.slots[name].ActivePID != 0 {
			row.Code, row.Detail = cluster.CodeRetry, "it did not get the slot in time"
		} else {
			s.slots[name].Failover = true
		}
		rows = append(rows, row)
	}
	return rows
}
