package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// maxKept bounds the reads kept per slot. Thinned by age, 64 of them reach from
// one cycle back to hours, each next one about a tenth older than the one after it.
const maxKept = 64

// keep takes this cycle's read of a slot among the kept ones, if anything in it
// changed, and gives snapshot bytes that have come to all reads of that restart_lsn.
func (c *cycle) keep(t *tracked) {
	kept := append([]Kept(nil), c.m.Kept[t.slot.Name]...)
	if !t.located || t.held {
		t.kept = kept
		return
	}
	newest := len(kept) - 1
	if newest < 0 || kept[newest].Position != t.pos || kept[newest].TwoPhaseAt != t.slot.TwoPhaseAt {
		kept = append(kept, Kept{Position: t.pos, TwoPhaseAt: t.slot.TwoPhaseAt, At: c.readAt, Source: t.slot.Incarnation, Slot: t.slot})
		c.moved = c.moved || newest >= 0
	}
	c.noteWalk(t)
	file, have := snapshotOf(kept, t.pos.Restart, t.slot.Incarnation)
	if !have {
		file, have = c.fetched(t)
	}
	for i := range kept {
		if have && kept[i].Position.Restart == t.pos.Restart && !kept[i].Snapshot.OK {
			kept[i].Snapshot, kept[i].SnapshotAt = cluster.Some(file.bytes), file.at
		}
	}
	t.kept = kept
}

// newestReplayed gives the index of the newest kept read whose
// confirmed_flush_lsn the standby has replayed, -1 where there is none.
func newestReplayed(kept []Kept, replay cluster.LSN) int {
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i].Position.Confirmed <= replay {
			return i
		}
	}
	return -1
}

// pruneKept drops what no standby can still want, then thins what is left.
func (c *cycle) pruneKept(kept []Kept) []Kept {
	if len(kept) < 2 {
		return kept
	}
	first := len(kept) - 1
	pinned := map[cluster.Position]bool{kept[first].Position: true}
	for _, replay := range c.replays {
		i := newestReplayed(kept, replay)
		if i >= 0 {
			pinned[kept[i].Position] = true
		}
		first = min(first, max(i, 0))
	}
	return thin(c.now, kept[first:], pinned)
}

// thin drops, while there are too many, the read whose going leaves the gap
// that is smallest for its age. The newest and each standby's next one stay.
func thin(now time.Time, kept []Kept, pinned map[cluster.Position]bool) []Kept {
	for len(kept) > maxKept {
		drop, least := 0, 0.0
		for i := 1; i < len(kept)-1; i++ {
			if pinned[kept[i].Position] {
				continue
			}
			gap := kept[i+1].At.Sub(kept[i-1].At)
			age := max(now.Sub(kept[i].At), time.Millisecond)
			if cost := float64(gap) / float64(age); drop == 0 || cost < least {
				drop, least = i, cost
			}
		}
		kept = append(append([]Kept(nil), kept[:drop]...), kept[drop+1:]...)
	}
	return kept
}
