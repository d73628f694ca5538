package plan

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// A consumer may receive, and confirm, what a standby has not. If that standby
// is promoted, the consumer has rows of (B, A] that the new primary never had;
// and where it goes on from A, it misses what the new primary writes up to there.

// Outrun is a position that the consumer of a slot has confirmed and that a
// standby had not received, and when it was read.
type Outrun struct {
	Confirmed cluster.LSN
	At        time.Time
}

// noteOutrun keeps the oldest confirmed position that the standby has not
// received yet. It has a moment for each: a consumer may be served first.
func (n *PairNote) noteOutrun(confirmed cluster.LSN, at time.Time, received cluster.LSN) {
	switch {
	case confirmed <= received:
		n.Outrun = Outrun{}
	case n.Outrun.Confirmed <= received:
		n.Outrun = Outrun{Confirmed: confirmed, At: at}
	}
}

// received is how far a standby's WAL reaches, however it came there.
func received(n cluster.Node) cluster.LSN { return max(n.Receive.Or(0), n.Replay.Or(0)) }

// consumerAheadRule: what is mirrored here would be promoted behind its consumer.
// Where nothing is mirrored yet, receive_lag tells the same.
func consumerAheadRule(c *cycle, pr *pair) *finding {
	if pr.counted() == nil {
		return nil
	}
	return c.outrun(pr, pr.t.note.HighestF)
}

func (c *cycle) outrun(pr *pair, confirmed cluster.LSN) *finding {
	o, has := pr.note.Outrun, received(pr.fact.Value.Node)
	if o.Confirmed == 0 || pr.fact.At.Sub(o.At) < c.p.Interval {
		return nil
	}
	return &finding{Unsafe, ReasonConsumerAhead, fmt.Sprintf("the consumer of %s has confirmed %s, %s has received %s: (%s, %s] would be missing there after a failover",
		pr.t.slot.Name, confirmed, pr.node, has, has, confirmed),
		"see why its walreceiver does not come on; synchronized_standby_slots (17 and later) holds consumers back until a standby has it"}
}

// Ahead says that a consumer has confirmed (From, To] and that this timeline
// does not have it. Jumped: the slot has been moved there. Used: by another consumer,
// which used the mirror that the slot was, and does so still.
type Ahead struct {
	From   cluster.LSN `json:"from"`
	To     cluster.LSN `json:"to"`
	Jumped bool        `json:"jumped,omitempty"`
	Used   bool        `json:"used,omitempty"`
	At     time.Time   `json:"at"`
}

// aheadFor is how long a jump is told of: it has happened and stays true.
const aheadFor = time.Hour

// noteAhead compares what a slot's consumer had confirmed with where this
// timeline began, once; and then looks at how the slot gets past that point.
// Decoding begins anew at restart_lsn, so a walsender that has sent less than
// confirmed_flush_lsn is nothing strange, until the slot moves past the fork.
func (c *cycle) noteAhead(t *tracked, before SlotNote, known bool) {
	n := c.lead.read.Node
	if c.successor && known && !t.recreated {
		t.note.Ahead, t.note.Joined = Ahead{}, false
		if fork := forkOf(n, c.ledTimeline); before.HighestF > fork {
			t.note.Ahead = Ahead{From: fork, To: before.HighestF, At: c.readAt}
		}
		if c.m.Pairs[Pair{Slot: t.slot.Name, Standby: c.lead.primary}].Used && t.slot.ActivePID != 0 {
			t.note.Ahead = Ahead{From: max(before.HighestF, before.Before), To: t.slot.Confirmed.Or(0), Used: true, At: c.readAt}
		}
	}
	if !known || t.recreated || len(n.History) == 0 {
		t.note.Joined = true
	}
	if !t.located {
		return
	}
	fork := forkOf(n, parentTimeline(n))
	end, last := n.Insert.Or(0), before.Last.V
	switch sent, sending := c.sent(t.slot.Name); {
	case end != 0 && before.Last.OK && last.Confirmed > end && t.pos.Confirmed > end && !c.successor:
		t.note.jump(end, t.pos.Confirmed, c.readAt)
	case t.note.Joined || t.pos.Confirmed <= fork || !sending:
	case t.note.Ahead.Used:
		t.note.Joined = true // it says nothing of the other consumer
	case sent >= t.pos.Confirmed:
		t.note.Ahead, t.note.Joined = Ahead{}, true
	default:
		t.note.jump(max(sent, fork), t.pos.Confirmed, c.readAt)
		t.note.Joined = true
	}
}

func (n *SlotNote) jump(from, to cluster.LSN, at time.Time) {
	n.Ahead = Ahead{From: from, To: to, Jumped: true, At: at}
}

// forkOf is where an earlier timeline of the node ended; where it is none of
// them, where the node's own began.
func forkOf(n cluster.Node, earlier cluster.Timeline) cluster.LSN {
	var last cluster.LSN
	for _, fork := range n.History {
		if last = fork.LSN; fork.Timeline == earlier {
			break
		}
	}
	return last
}

// sent is how far the walsender of a slot has decoded.
func (c *cycle) sent(slot string) (cluster.LSN, bool) {
	for _, w := range c.lead.read.Walsenders {
		if w.SlotName == slot && w.Sent.OK {
			return w.Sent.V, true
		}
	}
	return 0, false
}

// consumersAhead tells of consumers that are ahead of this primary.
func (c *cycle) consumersAhead() {
	for _, t := range c.slots {
		a := t.note.Ahead
		cond := Condition{Code: CondConsumerAhead, Subject: t.slot.Name, Severity: Critical}
		switch {
		case a.To == 0 || (a.Jumped || a.Used) && c.now.Sub(a.At) >= aheadFor:
			continue
		case a.Used:
			cond.Message = fmt.Sprintf("slot %s on %s was used there before the promotion, and stood at %s in its first read: its consumer on the old primary had confirmed %s, and misses (%s, %s] where it is another", t.slot.Name, c.lead.primary, a.To, a.From, a.From, a.To)
			cond.Hint = "if the consumer that has the slot now is not its own, stop it, drop the slot and let the other start anew"
		case a.Jumped:
			cond.Message = fmt.Sprintf("slot %s on %s was moved to %s by its consumer, beyond what was sent to it: (%s, %s] of timeline %d never reaches the consumer", t.slot.Name, c.lead.primary, a.To, a.From, a.To, c.m.Timeline)
			cond.Hint = "the consumer goes by a position of the old primary: copy its tables anew, or compare them with the primary's"
		default:
			cond.Message = fmt.Sprintf("the consumer of slot %s had confirmed %s, and %s was promoted at %s: it has (%s, %s] of the old primary, which is lost here", t.slot.Name, a.To, c.lead.primary, a.From, a.From, a.To)
			cond.Hint = "before it goes on, take what it has from there back, and let it begin at the slot's own position, not at its own"
		}
		c.condition(cond)
	}
}
