package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// aheadRule: a mirror of ours stands only where the slot has been.
func aheadRule(c *cycle, pr *pair) *finding {
	if pr.mirror == nil || c.replaces(pr) {
		return nil
	}
	if outruns(*pr.mirror, pr.t.note) {
		return movedFinding(pr, pr.t.note)
	}
	if beyondPrimary(*pr.mirror, c.lead.read.Node) {
		return &finding{Unsafe, ReasonMirrorAhead, fmt.Sprintf("the mirror of %s on %s is at %s, the WAL of the primary %s ends at %s of the same timeline: one of the two nodes was put back to an older state",
			pr.t.slot.Name, pr.node, lsnText(pr.mirror.Confirmed), c.lead.primary, c.lead.read.Node.Insert.V), "find out which of the two is to stay, and make the other anew from it"}
	}
	return nil
}

// outruns reports whether a mirror stands where no read of a primary has been:
// somebody else has moved it, who can do so on a standby from 16 on. A consumer that
// goes on from there misses what it has not confirmed.
func outruns(mirror cluster.Slot, note SlotNote) bool {
	highest := max(note.HighestF, note.Before)
	return highest != 0 && mirror.Confirmed.Or(0) > highest
}

func movedFinding(pr *pair, note SlotNote) *finding {
	hint := "something has moved it: a consumer that goes on from there would miss rows; drop it and it is made again"
	if pr.drop != "" {
		hint = "something has moved it: it is dropped and made again by itself; find out who used it there"
	}
	return &finding{Unsafe, ReasonMirrorAhead, fmt.Sprintf("the mirror of %s on %s is at %s, beyond all that the primary ever reported (%s)",
		pr.t.slot.Name, pr.node, pr.mirror.Confirmed.Or(0), max(note.HighestF, note.Before)), hint}
}

// noteMoved remembers such a mirror for the promotion of its node. While somebody
// uses it, it stands where that consumer is. Where there is a primary, that is not
// known to be the slot's: once it has left, nobody must go on from there.
func (pr *pair) noteMoved(note SlotNote, primary bool) {
	beyond, used := outruns(*pr.mirror, note), pr.mirror.ActivePID != 0
	pr.note.Moved = beyond && !used
	pr.note.Used = used && (beyond && primary || pr.note.Used)
}
