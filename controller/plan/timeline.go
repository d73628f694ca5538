package plan

import "github.com/slotkeeper/slotkeeper/cluster"

// parentTimeline is the one that a node's timeline branched off, 0 for the first.
// An original of an older one was left on a node that was a standby in between:
// the holds of those days knew nothing of it.
func parentTimeline(n cluster.Node) cluster.Timeline {
	if len(n.History) == 0 {
		return 0
	}
	return n.History[len(n.History)-1].Timeline
}

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
