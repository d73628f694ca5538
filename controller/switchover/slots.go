package switchover

import (
	"fmt"
	"maps"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Expected are the slots that are looked for on the new primary: those of the
// record, and beyond its room those of the ledger.
func Expected(r Record, s status.Status) []string {
	names := map[string]bool{}
	for _, b := range r.Slots {
		names[b.Name] = true
	}
	if r.More > 0 {
		for _, slot := range s.Slots {
			names[slot.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// slotsThere: was each slot looked at on whoever leads now?
func slotsThere(_ Policy, m Memory, f Facts) check {
	if all, ok := m.verified(f); ok {
		for _, found := range all {
			if found.Unknown {
				return check{action: Verify, text: fmt.Sprintf("slot %s on %s: %s", found.Name, m.led, found.Problem)}
			}
		}
		return doneCheck
	}
	text := "looking at the slots on " + m.led
	if f.Verified.Err != "" {
		text += ": " + f.Verified.Err
	}
	return check{action: Verify, text: text}
}

// verified is what was found on whoever leads now.
func (m Memory) verified(f Facts) ([]Found, bool) {
	v := f.Verified.Value
	if f.Verified.At.IsZero() || !f.Verified.OK() || v.Leader != m.led || v.Timeline != m.ledOn {
		return nil, false
	}
	return v.Slots, true
}

// SlotResult is what became of one slot.
type SlotResult struct {
	Name      string                   `json:"name"`
	Database  string                   `json:"database"`
	Plugin    string                   `json:"plugin"`
	Usable    bool                     `json:"usable"`
	Problem   string                   `json:"problem"`
	Restart   cluster.Opt[cluster.LSN] `json:"restart_lsn"`
	Confirmed cluster.Opt[cluster.LSN] `json:"confirmed_flush_lsn"`
	Mirror    cluster.Opt[cluster.LSN] `json:"mirror_confirmed_flush_lsn"` // where its consumer goes on, at the promotion
	// Consumer is how far its consumer can have confirmed on the old primary: where it
	// was seen at work, to the end of that timeline.
	Consumer   cluster.Opt[cluster.LSN] `json:"consumer_lsn"`
	Duplicates cluster.Opt[int64]       `json:"duplicates_bound_bytes"` // of WAL that may be decoded a second time
	// FailoverPending: it had the failover flag (17 and later) and does not have it yet.
	FailoverPending bool `json:"failover_flag_pending"`
}

// judgeSlots holds what was found on the new primary against what there was.
func judgeSlots(m Memory, f Facts) []SlotResult {
	r, _ := record(f)
	fork := forkOf(r, m, f)
	results := []SlotResult{}
	all, _ := m.verified(f)
	for _, found := range all {
		b := m.Before[found.Name]
		s := SlotResult{
			Name: found.Name, Database: b.Database, Plugin: b.Plugin, Usable: found.Usable, Problem: found.Problem,
			Restart: found.Restart, Confirmed: found.Confirmed, Consumer: b.Confirmed,
		}
		mirror := b.Mirror // on the candidate
		switch m.led {
		case r.Candidate:
		case r.Leader: // it has its own slot
			mirror = cluster.None[cluster.Position]()
		default:
			mirror = m.others[m.led][found.Name]
		}
		if mirror.OK {
			s.Mirror = cluster.Some(mirror.V.Confirmed)
			if found.There && (lsn(found.Confirmed) < mirror.V.Confirmed || lsn(found.Restart) < mirror.V.Restart) {
				s.Usable = false
				s.Problem = fmt.Sprintf("it is at %s, behind its mirror, which was at %s", lsn(found.Confirmed), mirror.V.Confirmed)
			}
		}
		// Nobody else moves a slot; and one that stands has its mirror where it is.
		if moved := b.Mirror.OK && b.Mirror.V.Confirmed != lsn(b.Confirmed); (b.Active || moved) && fork.OK {
			s.Consumer = cluster.Some(max(lsn(b.Confirmed), fork.V))
		}
		if found.There && s.Consumer.OK && s.Mirror.OK {
			s.Duplicates = cluster.Some(int64(min(s.Consumer.V-min(s.Mirror.V, s.Consumer.V), 1<<62)))
		}
		now, seen := find(f.Nodes[m.led].Value.Slots, found.Name)
		s.FailoverPending = b.Failover && found.There && !(found.Failover || seen && now.Failover)
		results = append(results, s)
	}
	return results
}

// forkOf is where the timeline of before ends, by the new primary's own history.
func forkOf(r Record, m Memory, f Facts) cluster.Opt[cluster.LSN] {
	for _, fork := range f.Nodes[m.led].Value.Node.History {
		if fork.Timeline == r.Timeline {
			return cluster.Some(fork.LSN)
		}
	}
	return cluster.None[cluster.LSN]()
}

// oldPrimaryBack: is the old primary a standby whose mirrors are SAFE, without help?
func oldPrimaryBack(_ Policy, m Memory, f Facts) check {
	r, _ := record(f)
	if m.led == r.Leader {
		return doneCheck // it leads again
	}
	old := f.Nodes[r.Leader]
	now := f.Nodes[m.led].Value.Node
	switch n := old.Value.Node; {
	case !old.OK():
		return waiting("%s leads; the old primary %s is no standby yet: %s%s", m.led, r.Leader, old.Err, blockers(true, m, f))
	case !n.InRecovery:
		return waiting("%s leads; the old primary %s still takes writes on timeline %d", m.led, r.Leader, n.Timeline)
	case n.Timeline != now.Timeline || !old.Value.Receiving:
		return waiting("%s leads; the old primary %s is in recovery and does not stream timeline %d yet", m.led, r.Leader, now.Timeline)
	case !f.Status.OK() || f.Doubt != "" || !f.Status.Value.ObservedAt.After(m.FirstWritable) || f.Status.Value.Primary == nil || f.Status.Value.Primary.Node != m.led:
		return waiting("%s leads, and %s streams from it; the daemon has not said yet that its mirrors are SAFE", m.led, r.Leader)
	}
	if c := safe(r.Leader, f.Status.Value); !c.done {
		return waiting("%s leads, and %s streams from it; %s", m.led, r.Leader, c.text)
	}
	for _, s := range judgeSlots(m, f) {
		if now, ok := find(f.Nodes[m.led].Value.Slots, s.Name); s.FailoverPending && ok && now.ActivePID == 0 {
			return waiting("slot %s had the failover flag, which is not set again yet", s.Name)
		}
	}
	return doneCheck
}

// OldPrimary is what became of it.
type OldPrimary struct {
	Node string `json:"node"`
	Role string `json:"role"` // primary, standby or unknown
	Safe bool   `json:"safe"` // every slot is SAFE on it again
	Text string `json:"text"` // why not
}
