package switchover

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// choose keeps the candidate, once there is one: which standby is ahead changes
// from one look to the next.
func (m Memory) choose(p Policy, f Facts) Memory {
	if r, ok := record(f); ok {
		m.Candidate, m.Why = r.Candidate, r.Why
		return m
	}
	switch {
	case p.To != "":
		m.Candidate, m.Why = p.To, "it was named"
		return m
	case !f.Keys.OK(), m.Candidate != "" && barred(m.Candidate, f).done:
		return m
	}
	m.Candidate, m.Why = "", ""
	type fit struct {
		name     string
		received cluster.LSN
		priority int64
	}
	var all []fit
	for _, member := range f.Keys.Value.Members {
		if member.Name == f.Keys.Value.Leader.Or("") || !settled(f).done || !barred(member.Name, f).done {
			continue
		}
		all = append(all, fit{member.Name, received(f.Nodes[member.Name].Value), member.Priority})
	}
	if len(all) == 0 {
		return m
	}
	slices.SortFunc(all, func(a, b fit) int {
		return cmp.Or(cmp.Compare(b.received, a.received), cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
	m.Candidate = all[0].name
	m.Why = fmt.Sprintf("every slot is SAFE on it, and it has received most, %s", all[0].received)
	if len(all) == 1 {
		m.Why = "it is the only standby that may be promoted and has every slot SAFE"
	}
	return m
}

// nobody says why no member is a candidate.
func nobody(f Facts) check {
	var why []string
	missing, hint := false, ""
	for _, m := range f.Keys.Value.Members {
		if m.Name == f.Keys.Value.Leader.Or("") {
			continue
		}
		c := barred(m.Name, f)
		missing = missing || c.unknown
		why = append(why, c.text)
		hint = cmp.Or(hint, c.hint)
	}
	switch {
	case len(why) == 0:
		return ending(OutcomeRefused, "", "there is no standby")
	case missing:
		c := unknown("no candidate is known to be safe: %s", listed(why))
		c.hint = hint
		return c
	}
	return ending(OutcomeRefused, hint, "there is no candidate: %s", listed(why))
}

func received(n Node) cluster.LSN { return max(lsn(n.Node.Receive), lsn(n.Node.Replay)) }
