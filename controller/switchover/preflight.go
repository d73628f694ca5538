package switchover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// preflight: may it be asked for at all? Once there is a record it was.
func preflight(p Policy, m Memory, f Facts) check {
	if !f.Record.OK() {
		return unknown("whether a switchover is under way cannot be read: %s", f.Record.Err)
	}
	if r, ok := record(f); ok {
		if p.DryRun {
			return ending(OutcomeRunning, "run it without --dry-run: it goes on with that one", "a switchover from %s to %s is under way", r.Leader, r.Candidate)
		}
		if m.next(p, r) {
			if c := settled(f); !c.done {
				return c
			}
			if c := barred(p.To, f); !c.done {
				return c
			}
			return check{action: Remove, text: fmt.Sprintf("the switchover from %s to %s, begun at %s, is over: %s leads. What became of %s is not waited for",
				r.Leader, r.Candidate, r.At.UTC().Format("15:04:05Z"), m.led, r.Leader)}
		}
		if p.To != "" && p.To != r.Candidate {
			return ending(OutcomeRefused, "run it without --to: it goes on with that one",
				"a switchover from %s to %s, asked for at %s, has not ended", r.Leader, r.Candidate, r.At.UTC().Format("2006-01-02 15:04:05Z"))
		}
		return doneCheck
	}
	if c := settled(f); !c.done {
		return c
	}
	if p.To != "" {
		return barred(p.To, f)
	}
	if m.Candidate != "" {
		return doneCheck
	}
	return nobody(f)
}

// past: when this run began, the handover that another had asked for was over. Only
// the old primary's return may be open, and that may never come.
func (m Memory) past(r Record) bool { return r.ID != m.ID && m.led != "" && !m.awaited }

// next: this run is to begin the one after.
func (m Memory) next(p Policy, r Record) bool { return m.past(r) && p.To != "" && p.To != m.led }

// settled looks at what has nothing to do with the candidate.
func settled(f Facts) check {
	if !f.Keys.OK() {
		return unknown("Patroni's keys cannot be read: %s", f.Keys.Err)
	}
	k := f.Keys.Value
	switch {
	case k.StandbyCluster:
		return ending(OutcomeRefused, "switch over in the cluster that it follows, or promote this one by Patroni",
			"this is a standby cluster: its leader is no primary")
	case k.Paused:
		return ending(OutcomeRefused, "end the pause first (patronictl resume)",
			"Patroni is paused: were the candidate to fail, nobody else would take over")
	case !k.Leader.OK:
		return ending(OutcomeRefused, "a switchover is from a leader; without one there is only a failover (patronictl failover)", "nobody leads")
	case k.Failover.OK:
		return ending(OutcomeRefused, "wait for its end, or take it back (patronictl flush)",
			"Patroni has a request already, from %q to %q, that slotkeeper did not make", k.Failover.V.Leader, k.Failover.V.Candidate)
	}
	leader := k.Leader.V
	server := f.Nodes[leader]
	switch _, member := k.member(leader); {
	case !member && !server.OK():
		c := unknown("Patroni's leader key names %q, and there is no such member", leader)
		c.hint = "wait until Patroni has renewed its keys (patronictl list); nobody but Patroni should write them"
		return c
	case !server.OK():
		return unknown("the leader %s cannot be read: %s", leader, server.Err)
	case !server.Value.writable():
		return unknown("%s has Patroni's leader key, and its server is in recovery", leader)
	}
	for name, other := range f.Nodes {
		if name != leader && other.OK() && other.Value.writable() && other.Value.Node.SystemID == server.Value.Node.SystemID {
			return ending(OutcomeRefused, "find out which of them is the primary before anything else", "split brain: %s and %s both take writes", leader, name)
		}
	}
	return believed(leader, server.Value.Node.Timeline, f)
}

// believed: is the status of the slots one of this primary, and of now?
func believed(leader string, timeline cluster.Timeline, f Facts) check {
	hint := "look at the daemon: slotkeeper status"
	c := doneCheck
	switch s := f.Status.Value; {
	case !f.Status.OK():
		c = unknown("the state of the slots is not known: %s", f.Status.Err)
	case f.Doubt != "":
		c = unknown("the state of the slots is not known: %s", f.Doubt)
	case s.Primary == nil:
		c = unknown("the state of the slots is not known: the daemon sees no primary")
	case s.Primary.Node != leader || s.Primary.Timeline != timeline:
		c = unknown("the state of the slots is not known: the daemon's primary is %s on timeline %d, Patroni's leader is %s on timeline %d",
			s.Primary.Node, s.Primary.Timeline, leader, timeline)
	default:
		for _, found := range s.Conditions {
			if found.Code == plan.CondSplitBrain {
				return ending(OutcomeRefused, found.Hint, "split brain: %s", found.Message)
			}
		}
	}
	c.hint = hint
	return c
}

// barred says why a member is no candidate.
func barred(name string, f Facts) check {
	k := f.Keys.Value
	m, ok := k.member(name)
	refuse := func(hint, format string, args ...any) check {
		return ending(OutcomeRefused, hint, "%s is no candidate: %s", name, fmt.Sprintf(format, args...))
	}
	switch {
	case !ok:
		var names []string
		for _, m := range k.Members {
			names = append(names, m.Name)
		}
		return refuse("", "it is not a member; the members are %s", strings.Join(names, ", "))
	case name == k.Leader.Or(""):
		return refuse("", "it is the leader already")
	case m.Unusable != "": // then it says nothing of the rest
		return refuse("", "%s", m.Unusable)
	case m.NoFailover:
		return refuse("take the tag out of its Patroni's configuration", "it is tagged nofailover")
	case m.Priority <= 0:
		return refuse("set it in its Patroni's configuration", "its failover_priority is %d", m.Priority)
	case k.Synchronous && m.NoSync:
		return refuse("", "Patroni is in synchronous mode, and it is tagged nosync")
	case k.Synchronous && !m.Sync:
		return refuse("name a synchronous standby (patronictl list)", "Patroni is in synchronous mode, and it is an asynchronous standby")
	case !m.Running:
		return refuse("wait until it runs (patronictl list)", "Patroni says that it is %q", m.State)
	}
	server := f.Nodes[name]
	leader := f.Nodes[k.Leader.Or("")].Value.Node
	switch n := server.Value.Node; {
	case !server.OK():
		c := unknown("the candidate %s cannot be read: %s", name, server.Err)
		c.hint = server.Hint
		return c
	case n.SystemID != leader.SystemID:
		return refuse("mend its conn_url", "its address leads to another system")
	case !n.InRecovery:
		return refuse("", "it is not a standby")
	case !server.Value.Receiving:
		// Its own server says so: Patroni's key lags behind, after a promotion above all.
		return refuse("wait until it streams (patronictl list)", "it does not stream")
	case n.Timeline != leader.Timeline:
		return refuse("wait until it follows", "it has replayed timeline %d, the leader is on %d", n.Timeline, leader.Timeline)
	}
	return safe(name, f.Status.Value)
}

// safe: would every slot survive on it?
func safe(name string, s status.Status) check {
	var bad []string
	hint, missing := "", false
	for _, slot := range s.Slots {
		at := slices.IndexFunc(slot.Standbys, func(p status.Standby) bool { return p.Node == name })
		switch {
		case at < 0:
			missing = true
			bad = append(bad, slot.Name+": nothing is known of it there")
		case slot.Standbys[at].Verdict != plan.Safe:
			p := slot.Standbys[at]
			missing = missing || p.Verdict == plan.Unknown
			bad = append(bad, fmt.Sprintf("%s is %s %s: %s", slot.Name, p.Verdict, p.Reason, p.Message))
			if hint == "" {
				hint = p.Hint
			}
		}
	}
	switch {
	case len(bad) == 0:
		return doneCheck
	case missing:
		c := unknown("slots on %s: %s", name, listed(bad))
		c.hint = hint
		return c
	}
	if hint == "" {
		hint = "slotkeeper wait --standby " + name + " waits until they are"
	}
	return ending(OutcomeRefused, hint, "slots would not survive on %s: %s", name, listed(bad))
}

// listed names a few and counts the rest.
func listed(all []string) string {
	const most = 3
	if len(all) > most {
		return fmt.Sprintf("%s; and %d more", strings.Join(all[:most], "; "), len(all)-most)
	}
	return strings.Join(all, "; ")
}
