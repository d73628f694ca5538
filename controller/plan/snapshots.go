package plan

import (
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// WantSnapshots gives the restart_lsns at which a snapshot file of the primary
// is wanted, in order and once each: those of the selected slots of this read
// for which no bytes are kept. While restart_lsn stands and there was no file,
// it is asked for again: a checkpoint may write it later.
func WantSnapshots(p Policy, m Memory, slots []cluster.Slot) []cluster.LSN {
	var want []cluster.LSN
	for _, s := range slots {
		pos, ok := s.Position()
		if !ok || !p.Selected(s) {
			continue
		}
		if _, have := snapshotAt(m.Kept[s.Name], pos.Restart, s.Incarnation); !have {
			want = append(want, pos.Restart)
		}
	}
	slices.Sort(want)
	return slices.Compact(want)
}

func snapshotAt(kept []Kept, restart cluster.LSN, of cluster.Incarnation) ([]byte, bool) {
	for _, k := range kept {
		if k.Position.Restart == restart && k.Snapshot.OK && k.Source.Same(of) {
			return k.Snapshot.V, true
		}
	}
	return nil, false
}
