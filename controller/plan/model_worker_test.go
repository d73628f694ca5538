package plan

import (
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// syncSlots is the worker of one standby: it ends at the first slot of such a
// name that it did not make, and says so.
func (w *world) syncSlots(node string) bool {
	s, p := w.servers[node], w.primary()
	for _, name := range slices.Sorted(maps.Keys(s.slots)) {
		if here := s.slots[name]; here.Synced && (p.slots[name] == nil || !p.slots[name].Failover) {
			delete(s.slots, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.slots)) {
		from := p.slots[name]
		if !from.Failover || from.Confirmed.V > s.node.Replay.V {
			continue
		}
		here := s.slots[name]
		if here != nil && !here.Synced {
			return false
		}
		if from.Invalidated != "" || !s.removed.NotAfter(from.CatalogXmin.V) {
			continue
		}
		if here != nil && here.Invalidated != "" {
			here = nil
		}
		if here == nil {
			here = &cluster.Slot{Name: name, Kind: cluster.Logical, Incarnation: w.incarnation(), Synced: true, Failover: true}
			s.slots[name] = here
			w.origin[here.Incarnation.Birth.V] = w.origin[from.Incarnation.Birth.V]
		}
		here.Plugin, here.Database, here.DatabaseOID = from.Plugin, from.Database, from.DatabaseOID
		here.Restart, here.Confirmed, here.CatalogXmin, here.EffectiveCatalogXmin = from.Restart, from.Confirmed, from.CatalogXmin, from.EffectiveCatalogXmin
		here.WALok, here.Saved, here.Snapshot = true, true, cluster.SnapshotAbsent
		w.placed[here.Incarnation.Birth.V] = place{s.node.Timeline, from.Confirmed.V}
	}
	return true
}
