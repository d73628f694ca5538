package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// holdState is what a node's hold is worth.
type holdState int

const (
	holdMissing   holdState = iota // no such slot
	holdForeign                    // a slot of that name that is not ours
	holdGone                       // ours, and it pins nothing, or pins what it should not
	holdUnsettled                  // ours, but not on disk as it is in memory, or somebody has it
	holdValid
)

// hold is a node's slotkeeper_hold as one read showed it.
type hold struct {
	state      holdState
	xmin       cluster.XID // of holdValid and holdUnsettled
	generation int64
	why        string // what is wrong with it
}

// broken reports that whatever it protected is not protected any more.
func (h hold) broken() bool { return h.state < holdUnsettled }

// pins reports whether a valid hold keeps rows from x on.
func (h hold) pins(x cluster.XID) bool { return h.state == holdValid && h.xmin.NotAfter(x) }

func (c *cycle) examineHold(slots []cluster.Slot) hold {
	s := named(slots, cluster.HoldName)
	if s == nil {
		return hold{why: "it is not there"}
	}
	if !c.ours(*s) || s.Marker.Kind != cluster.MarkHold {
		return hold{state: holdForeign, why: "a slot of that name is there without slotkeeper's marker"}
	}
	h := hold{generation: s.Marker.Generation, xmin: s.CatalogXmin.Or(0)}
	switch {
	case s.Invalidated != "":
		h.state, h.why = holdGone, fmt.Sprintf("it is invalidated (%s)", s.Invalidated)
	case s.Restart.Or(0) != 0 || s.Xmin.Or(0) != 0:
		h.state, h.why = holdGone, "it has been used by a walreceiver: it has a restart_lsn or an xmin"
	case !h.xmin.Normal():
		h.state, h.why = holdGone, "it has no catalog_xmin"
	case s.ActivePID != 0:
		h.state, h.why = holdUnsettled, fmt.Sprintf("process %d has it", s.ActivePID)
	case !s.Saved:
		h.state, h.why = holdUnsettled, "its state file does not hold what memory holds"
	case !s.EffectiveCatalogXmin.Or(0).NotAfter(h.xmin):
		h.state, h.why = holdUnsettled, "its catalog_xmin is not in effect yet"
	default:
		h.state = holdValid
	}
	return h
}

// witnesses reports whether the slot itself pins rows from x on, in this read:
// the same incarnation that x was read from, on this primary.
func (t tracked) witnesses(x cluster.XID) bool {
	return t.slot.Invalidated == "" && t.slot.EffectiveCatalogXmin.Or(0).NotAfter(x)
}

func named(slots []cluster.Slot, name string) *cluster.Slot {
	for i := range slots {
		if slots[i].Name == name {
			return &slots[i]
		}
	}
	return nil
}

// ours reports whether a slot carries the marker of this cluster's slotkeeper.
func (c *cycle) ours(s cluster.Slot) bool {
	return s.Marker != nil && s.Marker.Scope == c.p.Scope
}

// isMirror reports whether a slot is a mirror of ours.
func (c *cycle) isMirror(s cluster.Slot) bool {
	return c.ours(s) && s.Marker.Kind == cluster.MarkMirror && s.Kind == cluster.Logical
}
