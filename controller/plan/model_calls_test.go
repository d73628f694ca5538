package plan

import (
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
		case StepSessions:
			rows = w.endSessions(s, step)
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
