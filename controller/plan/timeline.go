package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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

func timelineRule(c *cycle, pr *pair) *finding {
	at, want := pr.fact.Value.Node.Timeline, c.lead.read.Node.Timeline
	if at != want {
		return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("%s replays timeline %d, the primary %s is on timeline %d", pr.node, at, c.lead.primary, want),
			"let it follow the new primary, with pg_rewind or a new base backup if it has diverged"}
	}
	if pr.mirror != nil && pastFork(*pr.mirror, c.lead.read.Node) {
		return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("the mirror of %s on %s stands at %s of timeline %d, which timeline %d does not contain",
			pr.t.slot.Name, pr.node, lsnText(pr.mirror.Confirmed), pr.mirror.Marker.Timeline, want), "it is replaced by itself"}
	}
	return nil
}
