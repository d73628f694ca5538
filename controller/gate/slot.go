package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Finding is why one slot would not survive the promotion of this node.
type Finding struct {
	Slot    string
	Reason  plan.Reason
	Message string
	// Drop: it is ours and not proven. A consumer must not find it.
	Drop bool
	// Unknown: it may be safe, only that could not be found out.
	Unknown bool
}

// expected are the slots that the primary had, by name.
func (l Ledger) expected() []string {
	var names []string
	for name, note := range l.Slots {
		if note.Plugin != "" && note.AbsentReads == 0 && note.LostWith == 0 && !note.Unproven {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// highest is how far a slot's consumer is known to have confirmed.
func highest(n plan.SlotNote) cluster.LSN { return max(n.HighestF, n.Before) }

// examine judges every slot that should be on this node, and every mirror that is.
func examine(p Policy, f Facts) []Finding {
	names := map[string]bool{}
	for _, name := range f.Ledger.Value.expected() {
		names[name] = true
	}
	for _, s := range f.Local.Value.Slots {
		if isOurs(p, s) {
			names[s.Name] = true
		}
	}
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if found := judge(p, f, name); found != nil {
			found.Slot = name
			all = append(all, *found)
		}
	}
	return all
}

// isOurs: a logical slot with our marker, a mirror or what this node left behind
// when it was the primary.
func isOurs(p Policy, s cluster.Slot) bool {
	return s.Kind == cluster.Logical && !s.Synced && s.Marker != nil && s.Marker.Scope == p.Scope &&
		(s.Marker.Kind == cluster.MarkMirror || s.Marker.Kind == cluster.MarkOriginal)
}

func judge(p Policy, f Facts, name string) *Finding {
	var there *cluster.Slot
	for i, s := range f.Local.Value.Slots {
		if s.Name == name {
			there = &f.Local.Value.Slots[i]
		}
	}
	note := f.Ledger.Value.Slots[name]
	switch {
	case there == nil:
		return &Finding{Reason: plan.ReasonSlotMissing, Message: "it is not there; its consumer had confirmed " + lsnText(highest(note))}
	case there.Synced && !there.Temporary && there.Invalidated == "":
		return ahead(f, note)
	case !isOurs(p, *there):
		return &Finding{Reason: plan.ReasonNotOurs, Message: "a slot of that name is there that slotkeeper did not make"}
	}
	if found := unproven(f, *there, note); found != nil {
		return found
	}
	return ahead(f, note)
}

// unproven holds what is there against the rules by which a mirror exists.
func unproven(f Facts, s cluster.Slot, note plan.SlotNote) *Finding {
	gap := func(format string, args ...any) *Finding {
		return &Finding{Reason: plan.ReasonProtectionGap, Drop: true, Message: fmt.Sprintf(format, args...)}
	}
	proof := f.Local.Value.Proofs[s.Name]
	_, positioned := s.Position()
	switch {
	case s.Marker.Kind == cluster.MarkOriginal:
		return gap("it was left here when this node was the primary of timeline %d, and nothing was held for it since", s.Marker.Timeline)
	case s.Invalidated != "":
		return &Finding{Reason: lost(s.Invalidated), Drop: true, Message: "the server has invalidated it: " + s.Invalidated}
	case !positioned:
		return gap("it has no position")
	case !s.WALok:
		return &Finding{Reason: plan.ReasonWALMissing, Drop: true, Message: fmt.Sprintf("the WAL from %s on is not there", s.Restart.Or(0))}
	}
	if why := unprotected(f, s); why != "" {
		return gap("%s", why)
	}
	if used := misused(f, s, note); used != nil {
		return used
	}
	switch {
	case note.Plugin != "" && !lineage(note, s.Marker.Source):
		return &Finding{Reason: plan.ReasonProtectionGap, Drop: true, Message: "it is a mirror of an earlier slot of that name"}
	case proof.Err != "":
		return &Finding{Reason: plan.ReasonUnreachable, Unknown: true, Message: "its proof could not be repeated: " + proof.Err}
	case proof.Way == "":
		return &Finding{Reason: plan.ReasonNoConsistentPoint, Drop: true, Message: fmt.Sprintf("decoding from %s does not become consistent before %s", s.Restart.Or(0), s.Confirmed.Or(0))}
	}
	return nil
}

// misused: from 16 on somebody can move a mirror on its standby beyond what the
// slot's consumer has confirmed. A consumer that goes on from there misses the rest.
func misused(f Facts, s cluster.Slot, note plan.SlotNote) *Finding {
	last := f.Ledger.Value.Verdicts[plan.Pair{Slot: s.Name, Standby: f.Node}]
	switch {
	case s.ActivePID != 0:
		return &Finding{Reason: plan.ReasonInUse, Message: fmt.Sprintf("process %d is using it there, and may have moved it beyond what its consumer has", s.ActivePID)}
	case last.Reason == plan.ReasonInUse && highest(note) != 0 && s.Confirmed.Or(0) > highest(note):
		return &Finding{Reason: plan.ReasonMirrorAhead, Drop: true, Message: "somebody was using it, and has left it beyond all that the primary is known to have reported"}
	case last.Reason == plan.ReasonMirrorAhead:
		return &Finding{Reason: plan.ReasonMirrorAhead, Drop: true, Message: "the last controller saw it beyond all that the primary ever reported"}
	}
	return nil
}

// unprotected says why a mirror's catalog rows may be gone. The holds of this node
// say nothing of the time before; the generation and the timeline do, and what the
// ledger shows of a timeline that came since.
func unprotected(f Facts, s cluster.Slot) string {
	ledger, local := f.Ledger.Value, f.Local.Value
	verdict := ledger.Verdicts[plan.Pair{Slot: s.Name, Standby: f.Node}]
	floor := ledger.Floors[f.Node]
	for _, other := range local.Slots {
		if other.Name == cluster.HoldName && other.Marker != nil && other.Marker.Kind == cluster.MarkHold {
			floor = max(floor, other.Marker.Generation)
		}
	}
	switch {
	case s.Marker.Generation < floor:
		return fmt.Sprintf("its catalog rows were held in generation %d, and the holds were gone or raised past it before generation %d", s.Marker.Generation, floor)
	case verdict.Reason == plan.ReasonProtectionGap:
		return "the last controller saw that its catalog rows were not held throughout"
	case s.Marker.Timeline == local.Node.Timeline:
		return ""
	case ledger.Timeline == local.Node.Timeline && verdict.State == plan.Safe:
		return ""
	}
	return fmt.Sprintf("it was proven on timeline %d, this node is on %d, and nobody has seen its catalog rows held there", s.Marker.Timeline, local.Node.Timeline)
}

// lineage reports whether a mirror was made from the slot that the ledger knows.
func lineage(n plan.SlotNote, source cluster.Incarnation) bool {
	return n.Incarnation.Same(source) || slices.ContainsFunc(n.Ancestors, source.Same)
}

// ahead: the consumer has confirmed what this node has not received. It goes on
// from its slot, and what lies between is gone.
func ahead(f Facts, note plan.SlotNote) *Finding {
	has := received(f.Local.Value.Node)
	if a := highest(note); a > has {
		return &Finding{Reason: plan.ReasonConsumerAhead,
			Message: fmt.Sprintf("its consumer has confirmed %s, this node has WAL up to %s: what lies in (%s, %s] would be gone", a, has, has, a)}
	}
	return nil
}

func received(n cluster.Node) cluster.LSN { return max(n.Receive.Or(0), n.Replay.Or(0), n.Flush.Or(0)) }

func lost(invalidated string) plan.Reason {
	switch r := plan.Reason(invalidated); r {
	case plan.ReasonRowsRemoved, plan.ReasonWalLevelInsufficient, plan.ReasonIdleTimeout:
		return r
	}
	return plan.ReasonWALRemoved
}

func lsnText(l cluster.LSN) string {
	if l == 0 {
		return "nothing that is known"
	}
	return l.String()
}
