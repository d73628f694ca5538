package plan

import "github.com/slotkeeper/slotkeeper/cluster"

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
	if now := h.CatalogXmin.Or(0); now.Normal() && target.V.Precedes(now) {
		s.beginHolding(now)
	}
	raises := target.OK && pinned.Precedes(target.V)
	if s.full && (raises || h.Marker == nil || h.Marker.Generation != step.Generation) {
		return append(rows, refuseWants(step, cluster.CodeSaveFailed)...)
	}
	h.Marker = marker(cluster.MarkHold, step.Fence, step.Generation, cluster.Incarnation{}, "")
	if target.OK {
		h.CatalogXmin, h.EffectiveCatalogXmin = target, target
	}
	w.holdsNow(s, h)
	s.held.tell(h.Marker)
	if !s.save(cluster.HoldName) {
		return append(rows, refuseWants(step, cluster.CodeSaveFailed)...)
	}
	return append(rows, answers...)
}

func (w *world) newHold(s *server) *cluster.Slot {
	h := &cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical, Incarnation: w.incarnation(), Saved: true, WALok: true}
	s.slots[cluster.HoldName] = h
	s.held = holding{}
	s.beginHolding(w.nextXID)
	return h
}

func (w *world) holdTarget(s *server, step Step, pinned cluster.XID) (target cluster.Opt[cluster.XID], answers []cluster.Outcome) {
	older := func(x cluster.XID) { target = cluster.OldestXID(target.Or(0), x) }
	older(s.oldestMirror().Or(0))
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

// oldestMirror is what the mirrors of this server need.
func (s *server) oldestMirror() cluster.Opt[cluster.XID] {
	var xs []cluster.XID
	for _, slot := range s.slots {
		if slot.Marker != nil && slot.Marker.Kind == cluster.MarkMirror {
			xs = append(xs, slot.CatalogXmin.Or(0))
		}
	}
	return cluster.OldestXID(xs...)
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
