package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkHold: the primary's hold is what keeps the catalog rows that mirrors need.
func checkHold(w *ward) []Finding {
	if w.primary == nil || len(w.managed()) == 0 {
		return nil
	}
	read, ok := w.primary.read()
	if !ok {
		return nil
	}
	f := Finding{Code: plan.CondHoldMissing, Severity: plan.Critical, Subject: w.primary.Name}
	s := named(read.Slots, cluster.HoldName)
	switch {
	case s == nil && !read.Node.Fence.OK:
		f.Severity, f.Message = plan.Info, fmt.Sprintf("%s has no %s: no controller has been here yet", w.primary.Name, cluster.HoldName)
		f.Hint = "slotkeeper run makes it"
	case s == nil:
		f.Message = fmt.Sprintf("%s has no %s, although a controller has been here: the mirrors are not protected", w.primary.Name, cluster.HoldName)
		f.Hint = "a running controller makes it again by itself; find out who dropped it"
	case !w.ours(*s) || s.Marker.Kind != cluster.MarkHold:
		f.Code, f.Message = string(plan.ReasonNotOurs), fmt.Sprintf("the slot %s on %s is not slotkeeper's of scope %s", cluster.HoldName, w.primary.Name, w.Policy.Scope)
		f.Hint = fmt.Sprintf("if nobody needs it: SELECT pg_drop_replication_slot('%s'); it is made anew", cluster.HoldName)
	case !s.CatalogXmin.Or(0).Normal() || s.Invalidated != "" || s.Restart.Or(0) != 0 || s.Xmin.Or(0) != 0:
		f.Message = fmt.Sprintf("the slot %s on %s protects nothing: somebody has used it, or it is invalidated", cluster.HoldName, w.primary.Name)
		f.Hint = "a running controller makes it again by itself; find out who used it"
	case !s.Saved:
		f.Code, f.Severity = string(plan.ReasonHoldNotSaved), plan.Warning
		f.Message = fmt.Sprintf("the slot %s on %s is not on disk as it is in memory", cluster.HoldName, w.primary.Name)
		f.Hint = "it is saved by itself; if it stays so, see whether the disk is full"
	default:
		return nil
	}
	return []Finding{f}
}
