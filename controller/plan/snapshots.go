package plan

import (
	"slices"
	"time"

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
		if !ok || !p.Selected(s) || m.serverAlone(s) || m.Aside[s.Name] {
			continue
		}
		if _, have := snapshotOf(m.Kept[s.Name], pos.Restart, s.Incarnation); !have {
			want = append(want, pos.Restart)
		}
	}
	slices.Sort(want)
	return slices.Compact(want)
}

// snapshotFile is a file and where it belongs; absent: at restart_lsn.
type snapshotFile struct {
	bytes []byte
	at    cluster.Opt[cluster.LSN]
}

func snapshotOf(kept []Kept, restart cluster.LSN, of cluster.Incarnation) (snapshotFile, bool) {
	for _, k := range kept {
		if k.Position.Restart == restart && k.Snapshot.OK && k.Source.Same(of) {
			return snapshotFile{bytes: k.Snapshot.V, at: k.SnapshotAt}, true
		}
	}
	return snapshotFile{}, false
}

// laterFile is the way of proof by a snapshot file after restart_lsn.
const laterFile = "later_file"

// Walk is what the primary's own walk over the WAL from a slot's restart_lsn
// said. A new slot's restart_lsn is where WAL ended at that moment, which is
// often no record that a snapshot file belongs to; then the files that other
// slots' decoders wrote just after it may prove it as well.
type Walk struct {
	Position cluster.Position
	At       time.Time                // when it was asked for
	Way      string                   // "" where it proved nothing, or has not ended
	File     cluster.Opt[[]byte]      // of way later_file, and where it belongs
	FileAt   cluster.Opt[cluster.LSN] //
	Resume   string                   // of one that has not ended
}

// WalkWanted is a walk to be asked of the primary.
type WalkWanted struct {
	Slot     string
	Position cluster.Position
	Resume   string
}

// WantWalks gives the walks that the primary is asked for: those of selected
// slots for which there is no snapshot file, neither kept nor among files, those
// just fetched. A walk that ended without a proof is asked for again after an
// interval, for other decoders write their files a little later; one that needs
// no file never again while restart_lsn stands.
func WantWalks(now time.Time, p Policy, m Memory, slots []cluster.Slot, files map[cluster.LSN][]byte) []WalkWanted {
	p = p.withDefaults()
	var want []WalkWanted
	for _, s := range slots {
		pos, ok := s.Position()
		if !ok || !p.Selected(s) || len(files[pos.Restart]) > 0 || m.serverAlone(s) || m.Aside[s.Name] {
			continue
		}
		if _, have := snapshotOf(m.Kept[s.Name], pos.Restart, s.Incarnation); have {
			continue
		}
		note := m.Slots[s.Name]
		w := WalkWanted{Slot: s.Name, Position: pos}
		if last := note.Walk; last.Position.Restart == pos.Restart && note.Incarnation.Same(s.Incarnation) {
			if last.Way != "" && last.Way != laterFile || last.Resume == "" && now.Sub(last.At) < p.Interval {
				continue
			}
			w.Resume = last.Resume
		}
		want = append(want, w)
	}
	return want
}

// noteWalk remembers what was asked for, so that it is not asked in each cycle.
func (c *cycle) noteWalk(t *tracked) {
	if w, ok := c.o.Walks[t.slot.Name]; ok && w.Position.Restart == t.pos.Restart {
		t.note.Walk = w
		t.note.Walk.File = cluster.None[[]byte]()
	}
}

// fetched gives the file that has come in this cycle.
func (c *cycle) fetched(t *tracked) (snapshotFile, bool) {
	if bytes := c.o.Snapshots[t.slot.Name]; len(bytes) > 0 {
		return snapshotFile{bytes: bytes}, true
	}
	w := c.o.Walks[t.slot.Name]
	if w.Way != laterFile || len(w.File.V) == 0 || w.Position.Restart != t.pos.Restart {
		return snapshotFile{}, false
	}
	return snapshotFile{bytes: w.File.V, at: w.FileAt}, true
}
