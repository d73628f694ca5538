package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// barred says why the cluster manager would not take a member in the candidate's
// place, "" where it would. A refusal in favour of one that it will not take only
// costs time without a primary, and then the same node is promoted all the same.
func (f Field) barred(c Candidate) string {
	switch {
	case c.Trouble != "":
		return c.Trouble
	case c.NoFailover:
		return "it is tagged nofailover"
	case c.Priority <= 0:
		return "its failover_priority is 0"
	case c.Priority < f.Me.Priority:
		return fmt.Sprintf("its failover_priority is %d, this node's %d", c.Priority, f.Me.Priority)
	case f.Sync && !f.Quorum.OK && !c.Sync:
		return "it is not synchronous"
	case f.Me.Timeline != 0 && c.Timeline != f.Me.Timeline:
		return fmt.Sprintf("it is on timeline %d, this node on %d", c.Timeline, f.Me.Timeline)
	case c.Received < f.Me.Received:
		return fmt.Sprintf("it has received %d bytes less WAL", uint64(f.Me.Received-c.Received))
	case f.MaximumLag > 0 && f.Leader > c.Received && f.Leader-c.Received > cluster.LSN(f.MaximumLag):
		return fmt.Sprintf("it is %d bytes behind the old primary, maximum_lag_on_failover is %d", uint64(f.Leader-c.Received), f.MaximumLag)
	}
	return f.outvoted(c)
}

// outvoted: in quorum mode Patroni takes a member that enough of the synchronous ones
// are not ahead of, so that one of them has all that was committed. It need not be
// one of them. The old primary has all of it where nobody is ahead.
func (f Field) outvoted(c Candidate) string {
	if !f.Sync || !f.Quorum.OK {
		return ""
	}
	var votes, ahead int64
	for _, voter := range append([]Candidate{f.Me}, f.Others...) {
		switch {
		case voter.Name == c.Name || voter.Trouble != "" || voter.NoFailover || voter.Received == 0:
		case voter.Received > c.Received:
			ahead++
		case voter.Sync:
			votes++
		}
	}
	needs := f.Quorum.V
	if !c.Sync {
		needs++
	}
	if votes >= needs || ahead == 0 && c.Name == f.SyncLeader {
		return ""
	}
	return fmt.Sprintf("the quorum would not take it: %d of the %d synchronous members that it needs are there and have received no more", votes, needs)
}

// better names a live member that would lose nothing and would be taken; "" and
// why there is none.
func better(now time.Time, p Policy, f Facts) (name, why string) {
	switch {
	case !f.Rivals.OK():
		return "", "the other members are not known: " + f.Rivals.Err
	case len(f.Rivals.Value.Others) == 0:
		return "", "there is no other member"
	case !f.Ledger.OK():
		return "", "what is known of the other members cannot be read: " + f.Ledger.Err
	}
	ledger := f.Ledger.Value
	if age := ledger.age(now); age > p.MaxProofAge {
		return "", fmt.Sprintf("what is known of the other members is %s old", age.Round(time.Second))
	}
	others := slices.SortedFunc(slices.Values(f.Rivals.Value.Others), func(a, b Candidate) int {
		switch {
		case a.Received != b.Received && a.Received > b.Received, a.Received == b.Received && a.Name < b.Name:
			return -1
		}
		return 1
	})
	for _, c := range others {
		reason := f.Rivals.Value.barred(c)
		if reason == "" {
			reason = ledger.unsafe(c)
		}
		if reason == "" {
			return c.Name, ""
		}
		if why != "" {
			why += "; "
		}
		why += c.Name + ": " + reason
	}
	return "", why
}

// unsafe says which slot another member would lose, "" where none.
func (l Ledger) unsafe(c Candidate) string {
	for _, name := range l.expected() {
		v, ok := l.Verdicts[plan.Pair{Slot: name, Standby: c.Name}]
		if !ok || v.State != plan.Safe {
			return fmt.Sprintf("slot %s is not safe there (%s)", name, orNone(string(v.Reason)))
		}
		if highest := highest(l.Slots[name]); highest > c.Received {
			return fmt.Sprintf("the consumer of %s has confirmed %s, it has received %s", name, highest, c.Received)
		}
	}
	return ""
}

func orNone(reason string) string {
	if reason == "" {
		return "nothing is known of it"
	}
	return reason
}
