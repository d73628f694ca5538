package switchover

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// offer is the switchover that would be asked for now.
func (m Memory) offer(f Facts) Consent {
	leader := f.Keys.Value.Leader.V
	return Consent{Leader: leader, Timeline: f.Nodes[leader].Value.Node.Timeline, Candidate: m.Candidate}
}

// confirmed: the operator agrees to this switchover, or has said so beforehand. What
// was agreed to beforehand is from the leader of that moment, to whom preflight takes.
func confirmed(p Policy, m Memory, f Facts) check {
	if _, under := record(f); under {
		return doneCheck
	}
	now, said := m.offer(f), f.Agreed.V
	said.At = time.Time{}
	switch shown := m.shown.Or(now); {
	case p.DryRun:
		c := ending(OutcomeReady, "", "would switch over %s: %s", now, m.Why)
		if lag := caughtUp(p, m, f); !lag.done {
			c.text += "; first it would wait: " + lag.text
		}
		return c
	case p.Yes && (now.Leader != shown.Leader || now.Timeline != shown.Timeline):
		return ending(OutcomeRefused, "nothing was asked of Patroni; run it again where it is still wanted",
			"when this run began %s led on timeline %d, and now %s leads on timeline %d", shown.Leader, shown.Timeline, now.Leader, now.Timeline)
	case p.Yes || said == now:
		return doneCheck
	case f.Agreed.OK:
		return check{action: Confirm, text: fmt.Sprintf("what was agreed to was %s on timeline %d; by now it would be %s on timeline %d (%s): switch over?",
			said, said.Timeline, now, now.Timeline, m.Why)}
	}
	return check{action: Confirm, text: fmt.Sprintf("switch over %s (%s)?", now, m.Why)}
}

// caughtUp: are the candidate, and its mirrors, where the primary and its slots
// are, or nearly so? A slot made since the daemon last looked has no mirror yet, and
// no verdict that says so.
func caughtUp(p Policy, m Memory, f Facts) check {
	if _, ok := record(f); ok {
		return doneCheck
	}
	primary, candidate := f.Nodes[f.Keys.Value.Leader.V].Value, f.Nodes[m.Candidate].Value
	var unheard []string
	for _, slot := range primary.Slots {
		if p.Rules.Selected(slot) && !judged(slot.Name, f.Status.Value) {
			unheard = append(unheard, slot.Name)
		}
	}
	if len(unheard) > 0 {
		return unknown("the daemon does not know of these slots on %s yet: %s", f.Keys.Value.Leader.V, listed(unheard))
	}
	if end, has := lsn(primary.Node.Flush), received(candidate); end > has && end-has > catchUpBytes {
		return waiting("%s is %s behind %s", m.Candidate, bytes(end-has), f.Keys.Value.Leader.V)
	}
	var behind []string
	for _, required := range f.Status.Value.Slots {
		slot, ok := find(primary.Slots, required.Name)
		if !ok || slot.Invalidated != "" {
			continue // the daemon says what that means in its next cycle
		}
		mirror, ok := find(candidate.Slots, required.Name)
		switch at, to := lsn(mirror.Confirmed), lsn(slot.Confirmed); {
		case !ok:
			behind = append(behind, fmt.Sprintf("the mirror of %s is not there", slot.Name))
		case to > at && to-at > catchUpBytes:
			behind = append(behind, fmt.Sprintf("the mirror of %s is %s behind", slot.Name, bytes(to-at)))
		}
	}
	if len(behind) > 0 {
		return waiting("on %s %s", m.Candidate, listed(behind))
	}
	return doneCheck
}

// recorded: what will be asked stands in etcd.
func recorded(_ Policy, _ Memory, f Facts) check {
	if _, ok := record(f); ok {
		return doneCheck
	}
	return check{action: Write, text: "recording in etcd what will be asked"}
}

// asked: only the run that wrote the record asks, and only once. Whether a run
// before this one has, nobody can say: the facts will.
func asked(_ Policy, m Memory, f Facts) check {
	r, _ := record(f)
	if r.ID != m.ID || f.Request.Made {
		return doneCheck
	}
	return check{action: Ask, text: fmt.Sprintf("asking Patroni on %s to hand over to %s", r.Leader, r.Candidate)}
}

// record is the record of what is about to be asked.
func (m Memory) record(p Policy, f Facts) Record {
	k := f.Keys.Value
	n := f.Nodes[k.Leader.V].Value.Node
	r := Record{
		ID: m.ID, Leader: k.Leader.V, Candidate: m.Candidate, Why: m.Why, At: f.Now.UTC(), SystemID: n.SystemID, Timeline: n.Timeline,
		Modified: k.Modified, Slots: []Before{}, Senders: m.Senders,
	}
	if len(f.Gate) > 0 {
		r.Gate = cluster.Some(f.Gate[len(f.Gate)-1])
	}
	for _, name := range slices.Sorted(maps.Keys(m.Before)) {
		if b := m.Before[name]; judged(name, f.Status.Value) || p.Rules.Selected(b.slot()) {
			r.Slots = append(r.Slots, b)
		}
	}
	return r
}

// amended is the record with what was seen until the old primary stopped. A slot may
// have been made meanwhile: it is looked for as well.
func (m Memory) amended(p Policy) Record {
	r := m.seen.V
	r.Last, r.Senders = cluster.Some(m.LastWritable.UTC()), m.Senders
	r.Slots = slices.Clone(r.Slots)
	for _, name := range slices.Sorted(maps.Keys(m.Before)) {
		now := m.Before[name]
		at := slices.IndexFunc(r.Slots, func(b Before) bool { return b.Name == name })
		switch {
		case at >= 0:
			r.Slots[at] = now
		case r.More == 0 && now.Confirmed.OK && p.Rules.Selected(now.slot()):
			r.Slots = append(r.Slots, now)
		}
	}
	return r
}

// slot is what the rules of selection look at.
func (b Before) slot() cluster.Slot {
	return cluster.Slot{Name: b.Name, Kind: cluster.Logical, Database: b.Database, Plugin: b.Plugin}
}

// judged: the status has a row for the slot.
func judged(name string, s status.Status) bool {
	return slices.ContainsFunc(s.Slots, func(row status.Slot) bool { return row.Name == name })
}

func find(slots []cluster.Slot, name string) (cluster.Slot, bool) {
	for _, s := range slots {
		if s.Name == name && s.Kind == cluster.Logical {
			return s, true
		}
	}
	return cluster.Slot{}, false
}

func bytes(n cluster.LSN) string { return fmt.Sprintf("%d bytes", uint64(n)) }
