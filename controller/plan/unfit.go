package plan

import "fmt"

// unfitRule: the mirror is there and protected, but could not be decoded from.
func unfitRule(_ *cycle, pr *pair) *finding {
	m, name := pr.mirror, pr.t.slot.Name
	at, ok := m.Position()
	switch {
	case !ok:
		return &finding{Pending, ReasonNew, fmt.Sprintf("the mirror of %s on %s has no position", name, pr.node), "it is dropped and made again"}
	case !m.WALok:
		return &finding{Pending, ReasonWALMissing, fmt.Sprintf("%s needs WAL from %s, which %s does not have", name, at.Restart, pr.node),
			"it heals when restart_lsn moves beyond what is missing"}
	case snapshotGone(*m):
		return &finding{Pending, ReasonBadSnapshot, fmt.Sprintf("the snapshot file of %s at %s on %s is %s", name, m.Marker.Witness.Or(at.Restart), pr.node, m.Snapshot), "it is shipped again"}
	case !m.Saved:
		return &finding{Pending, ReasonBusy, fmt.Sprintf("the mirror of %s on %s is not saved to disk yet", name, pr.node), "look at the standby's log and free space if this stays"}
	}
	return nil
}
