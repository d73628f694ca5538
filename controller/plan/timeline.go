package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// pastFork reports whether a mirror made on an earlier timeline stands where
// the primary's history does not lead: beyond the end of that timeline, or on
// one that is none of its ancestors.
func pastFork(mirror cluster.Slot, primary cluster.Node) bool {
	made := mirror.Marker.Timeline
	if made == primary.Timeline {
		return false
	}
	for _, fork := range primary.History {
		if fork.Timeline == made {
			return mirror.Confirmed.Or(0) > fork.LSN
		}
	}
	return true
}
