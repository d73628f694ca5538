package gate

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Mode says what is done with a node that would lose a slot.
type Mode string

// The modes.
const (
	// Prefer refuses only while another node would lose nothing and would be taken.
	Prefer Mode = "prefer"
	// Strict refuses whatever is not safe, or not known.
	Strict Mode = "strict"
	// Observe never refuses.
	Observe Mode = "observe"
)

// Policy is the part of the configuration that the decision depends on.
type Policy struct {
	Scope       string
	Mode        Mode
	MaxRefusals int           // of one failover, in mode Prefer
	MaxProofAge time.Duration // a ledger older than this says nothing of another node
}

// Facts is all that is known when the answer is due. What could not be found out
// in time is a Fact with Err.
type Facts struct {
	Node     string // the candidate's name
	Local    plan.Fact[Local]
	Ledger   plan.Fact[Ledger]
	Rivals   plan.Fact[Field]
	Refusals int // of this failover so far, on all nodes
}

// Local is what the candidate's own server shows.
type Local struct {
	Node   cluster.Node
	Slots  []cluster.Slot
	Proofs map[string]Proof // per mirror
}

// Proof is what a walk over the candidate's own WAL said of one mirror.
type Proof struct {
	Way string // "" where decoding does not become consistent in time
	Err string // why that could not be found out
}

// Ledger is what the last controller knew.
type Ledger struct {
	At       time.Time // of the oldest position in it; zero where it holds none
	Timeline cluster.Timeline
	Slots    map[string]plan.SlotNote
	Floors   map[string]int64 // per node: a mirror of an earlier generation is not protected
	Verdicts map[plan.Pair]plan.Verdict
}

// FromLedger puts the ledger's documents into the form that the gate works on.
func FromLedger(s status.Status, m plan.Memory) Ledger {
	l := Ledger{At: s.At, Timeline: m.Timeline, Slots: m.Slots, Floors: map[string]int64{}, Verdicts: map[plan.Pair]plan.Verdict{}}
	for name, note := range m.Standbys {
		l.Floors[name] = max(m.Continuous, note.MinGeneration)
	}
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			l.Verdicts[plan.Pair{Slot: slot.Name, Standby: p.Node}] = plan.Verdict{
				Slot: slot.Name, Standby: p.Node, State: p.Verdict, Reason: p.Reason, Message: p.Message,
			}
		}
	}
	return l
}

// age is how old the oldest position is; 0 for a ledger that holds none.
func (l Ledger) age(now time.Time) time.Duration {
	if l.At.IsZero() {
		return 0
	}
	return max(now.Sub(l.At), 0)
}

// Field is who else could be promoted, and by which rules.
type Field struct {
	Me     Candidate // its Timeline and Received are zero where its server could not be read
	Others []Candidate
	// Sync: only members that the cluster manager calls synchronous may be promoted.
	Sync bool
	// Quorum, in quorum mode instead: any member may be promoted for which this many
	// synchronous ones beside it speak, one more where it is none itself.
	Quorum cluster.Opt[int64]
	// SyncLeader is the primary that all of them have confirmed to.
	SyncLeader string
	// MaximumLag is how many bytes a candidate may be behind Leader, the last known
	// position of the old primary; zero: it does not matter.
	MaximumLag int64
	Leader     cluster.LSN
}

// Candidate is a member as the cluster manager would weigh it.
type Candidate struct {
	Name       string
	Trouble    string // why it cannot be asked, "" where it answers
	Received   cluster.LSN
	Timeline   cluster.Timeline
	NoFailover bool
	Priority   int // the higher is taken first where both have received the same
	Sync       bool
}
