package switchover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Sender is a walsender of the old primary. It does not stop before each of them
// has had all of its WAL confirmed.
type Sender struct {
	PID             int32                    `json:"pid"`
	ApplicationName string                   `json:"application_name"`
	Client          string                   `json:"client"` // "" over a local socket
	Slot            string                   `json:"slot"`   // "" for none
	Confirmed       cluster.Opt[cluster.LSN] `json:"confirmed_lsn"`
	Behind          cluster.Opt[int64]       `json:"behind_bytes"` // absent where it has confirmed nothing
	Since           time.Time                `json:"since"`        // it has confirmed nothing more since, as far as was seen
}

// standing is how long a walsender has confirmed nothing that is not just slow.
const standing = time.Second

// maxSenders bounds what is kept and shown of them.
const maxSenders = 8

type mark struct {
	at    cluster.LSN
	since time.Time
}

// observe takes into memory what will not be seen again.
func (m Memory) observe(f Facts) Memory {
	old := f.Keys.Value.Leader.Or("")
	r, under := record(f)
	if under {
		old = r.Leader
		m = m.recall(r)
	}
	fact := f.Nodes[old]
	// After the handover the old primary may be one again, on another timeline.
	if fact.OK() && fact.Value.writable() && (!under || fact.Value.Node.Timeline == r.Timeline) {
		m = m.lastOf(fact.Value, fact.At)
	}
	leader := f.Keys.Value.Leader.Or("")
	switch now := f.Nodes[leader]; {
	case !under || !f.Keys.OK():
	case now.OK() && now.Value.writable() && now.Value.Node.Timeline > r.Timeline:
		if on := now.Value.Node.Timeline; m.led != leader || m.ledOn != on {
			m.led, m.ledOn, m.FirstWritable = leader, on, now.At
		}
	case m.led == "":
		m.awaited = true
	}
	return m
}

// recall takes from the record what this run has not seen itself.
func (m Memory) recall(r Record) Memory {
	before := maps.Clone(m.Before)
	if before == nil {
		before = map[string]Before{}
	}
	for _, b := range r.Slots {
		if _, seen := before[b.Name]; !seen {
			before[b.Name] = b
		}
	}
	m.Before = before
	if m.SendersAt.IsZero() {
		m.Senders, m.SendersAt = r.Senders, r.At
	}
	if m.LastWritable.IsZero() && r.Last.OK {
		m.LastWritable, m.SendersAt = r.Last.V, r.Last.V
	}
	return m
}

// stopped: the old primary takes no writes any more, and nobody but this run knows
// when it last did and who was connected then.
func (m Memory) stopped(f Facts) bool {
	r, under := record(f)
	fact := f.Nodes[r.Leader]
	return under && r.ID == m.ID && r.Asked && !r.Last.OK && !m.LastWritable.IsZero() && (!fact.OK() || !fact.Value.writable())
}

// lastOf is the old primary as it was last seen to take writes.
func (m Memory) lastOf(n Node, at time.Time) Memory {
	if !at.After(m.LastWritable) {
		return m
	}
	m.LastWritable, m.SendersAt = at, at
	end := max(lsn(n.Node.Insert), lsn(n.Node.Flush))
	moved := map[int32]mark{}
	m.Senders = []Sender{}
	for _, w := range n.Walsenders {
		s := Sender{PID: w.PID, ApplicationName: w.ApplicationName, Client: w.Client, Slot: w.SlotName, Confirmed: w.Flush}
		if slot, ok := find(n.Slots, w.SlotName); ok && lsn(slot.Confirmed) > lsn(s.Confirmed) {
			s.Confirmed = slot.Confirmed // a consumer's word may be older than what it has confirmed before
		}
		k, known := m.moved[w.PID]
		if !known || lsn(s.Confirmed) != k.at {
			k = mark{at: lsn(s.Confirmed), since: at}
		}
		moved[w.PID], s.Since = k, k.since
		if s.Confirmed.OK && end >= s.Confirmed.V {
			s.Behind = cluster.Some(int64(min(end-s.Confirmed.V, 1<<62)))
		}
		if s.Behind.Or(1) > 0 {
			m.Senders = append(m.Senders, s)
		}
	}
	m.moved = moved
	// The one that has stood still for longest is the likeliest. Those that move are
	// behind for a moment only, as every one is under load.
	if still := func(s Sender) bool { return at.Sub(s.Since) >= standing }; slices.ContainsFunc(m.Senders, still) {
		m.Senders = slices.DeleteFunc(m.Senders, func(s Sender) bool { return !still(s) })
	}
	slices.SortFunc(m.Senders, func(a, b Sender) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(b.Behind.Or(1<<62), a.Behind.Or(1<<62)), cmp.Compare(a.PID, b.PID))
	})
	m.Senders = m.Senders[:min(len(m.Senders), maxSenders)]
	before := map[string]Before{}
	for _, slot := range n.Slots {
		if slot.Kind != cluster.Logical || slot.Temporary {
			continue
		}
		was, known := m.Before[slot.Name]
		before[slot.Name] = Before{
			Name: slot.Name, Database: slot.Database, Plugin: slot.Plugin, Confirmed: slot.Confirmed,
			Active:   slot.ActivePID != 0 || was.Active || known && was.Confirmed != slot.Confirmed,
			Failover: slot.Failover, Mirror: was.Mirror,
		}
	}
	m.Before = before
	return m
}

// mirrors notes where each standby's mirrors are, as long as it is one: any of them
// may come to lead.
func (m Memory) mirrors(f Facts) Memory {
	others := maps.Clone(m.others)
	if others == nil {
		others = map[string]map[string]cluster.Opt[cluster.Position]{}
	}
	for name, fact := range f.Nodes {
		if !fact.OK() || fact.Value.writable() {
			continue
		}
		others[name] = map[string]cluster.Opt[cluster.Position]{}
		for _, slot := range fact.Value.Slots {
			if at, ok := slot.Position(); ok {
				others[name][slot.Name] = cluster.Some(at)
			}
		}
	}
	m.others = others
	before := maps.Clone(m.Before)
	for name, at := range others[m.Candidate] {
		if b, ok := before[name]; ok {
			b.Mirror = at
			before[name] = b
		}
	}
	m.Before = before
	return m
}
