package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Fact is one source's answer, and when it was asked. Err is "" for an answer,
// else why there is none; then Value is not to be used.
type Fact[T any] struct {
	Value T         `json:"value"`
	At    time.Time `json:"at"`
	Err   string    `json:"err,omitempty"`
	// Reason is the verdict reason that Err stands for: unreachable, stale,
	// no_privilege, extension_unavailable or wrong_endpoint.
	Reason Reason `json:"reason,omitempty"`
	// Hint says what to do about Err, where the source itself knows it.
	Hint string `json:"hint,omitempty"`
}

// OK reports whether there is an answer.
func (f Fact[T]) OK() bool { return f.Err == "" && !f.At.IsZero() }

// NodeRead is one complete read of one node.
type NodeRead struct {
	Node       cluster.Node        `json:"node"`
	Slots      []cluster.Slot      `json:"slots"`
	Walsenders []cluster.Walsender `json:"walsenders"`
}

// Observation is what one cycle saw.
type Observation struct {
	Begun     time.Time                 `json:"begun"`
	Cycle     uint64                    `json:"cycle"`
	Topology  Fact[cluster.Topology]    `json:"topology"`
	Nodes     map[string]Fact[NodeRead] `json:"nodes"`
	Snapshots map[string][]byte         `json:"-"` // per slot: the file at the restart_lsn of this cycle's read
	Walks     map[string]Walk           `json:"-"` // per slot without such a file: what the primary's own walk said
}

// Policy is the part of the configuration that decisions depend on.
type Policy struct {
	Scope      string
	Owner      string // this controller's name
	Include    []Match
	Exclude    []Match
	Interval   time.Duration // the longest wait without a change; "two cycles" is twice this
	MaxHoldAge time.Duration
	MaxWalk    int64         // bytes of WAL that one apply may walk per slot
	RaiseEvery time.Duration // the shortest time between two raises of the holds; zero: DefaultRaiseEvery
	StaleAfter time.Duration // an answer that was asked for so long ago is none; zero: DefaultStaleAfter
	LeaseTTL   time.Duration // fences are raised again (heartbeat) after this long; zero: DefaultLeaseTTL
	// TakeOver: a fence of another etcd is replaced, once on each node.
	TakeOver bool
	// ManageStandbySlots: synchronized_standby_slots is kept to the live
	// candidates; else it is only looked at.
	ManageStandbySlots bool
	// ManageOldSessions: idle sessions of standbys that keep mirrors from being
	// made are ended, whosever they are; else only Patroni's own.
	ManageOldSessions bool
}

// Defaults of a Policy's zero fields.
const (
	DefaultInterval   = time.Second
	DefaultMaxHoldAge = time.Hour
	DefaultMaxWalk    = int64(64 << 20)
	// DefaultRaiseEvery: a raise is a save (four fsyncs) on every node, and a low hold costs little.
	DefaultRaiseEvery = 5 * time.Second
	DefaultLeaseTTL   = 10 * time.Second
	// DefaultStaleAfter: a healthy node answers within milliseconds.
	DefaultStaleAfter = 10 * time.Second
)

// Match selects slots: each non-empty pattern must match as a whole. Patterns
// are those of path.Match, except that "/" is an ordinary character: "*" any
// text, "?" one character, "[a-z]" a class, "\\" quotes the next character. A
// Match without any pattern matches nothing, so that an empty entry in a list
// cannot exclude everything.
type Match struct {
	Name, Database, Plugin string
}

// Stage orders the steps of a plan; all of one stage end before the next begins.
type Stage int

// The stages, in order.
const (
	StageFence Stage = iota
	StageMark
	StageLowerPrimary
	StageLowerStandbys
	StageApply
	StageDrop
	StageRaise
	StageFailover
	StageGate
)

// StepKind says which call of primary or standby a step is.
type StepKind string

// The kinds of step.
const (
	StepFence StepKind = "fence" // raise_fence on Node
	StepMark  StepKind = "mark"
	StepHold  StepKind = "hold" // lower or raise; also the wal hold
	StepStamp StepKind = "stamp"
	StepApply StepKind = "apply"
	StepDrop  StepKind = "drop"
	// StepSessions ends the idle sessions of the applications in Names that are
	// older than the node's hold.
	StepSessions StepKind = "sessions"
	// StepFailover sets the failover flag of the slots in Names, by the
	// replication command ALTER_REPLICATION_SLOT.
	StepFailover StepKind = "failover"
	// StepGate sets synchronized_standby_slots to Names, by ALTER SYSTEM.
	StepGate StepKind = "gate"
)

// Step is one call on one node, as data. The same data is printed by
// `slotkeeper plan` and executed by the loop.
type Step struct {
	ID           string                     `json:"id"`
	Stage        Stage                      `json:"stage"`
	Node         string                     `json:"node"`
	OnPrimary    bool                       `json:"on_primary"`
	Kind         StepKind                   `json:"kind"`
	Fence        cluster.Fence              `json:"fence"`
	Replaces     cluster.Opt[cluster.Fence] `json:"replaces,omitzero"` // of a fence step: the fence that goes, if it is still this one
	Changes      []cluster.Change           `json:"changes,omitempty"`
	Names        []string                   `json:"names,omitempty"`
	Incarnations []cluster.Incarnation      `json:"incarnations,omitempty"` // of Names, for mark
	Wants        []cluster.Want             `json:"wants,omitempty"`
	WAL          cluster.Opt[cluster.LSN]   `json:"wal,omitzero"` // of the wal hold: absent leaves it, 0 clears it
	Generation   int64                      `json:"generation,omitempty"`
	Needs        []string                   `json:"needs,omitempty"` // IDs of steps that must not have failed
	MaxBytes     int64                      `json:"max_bytes,omitempty"`
	Why          string                     `json:"why"`
}

// StepOutcome is what came of one step. Err and Skipped are "" for a call that
// was made and answered.
type StepOutcome struct {
	StepID   string            `json:"step"`
	Err      string            `json:"err,omitempty"`     // the call failed as a whole
	Skipped  string            `json:"skipped,omitempty"` // why it was not made
	Cut      bool              `json:"cut,omitempty"`     // the cycle's time was used up: changes without an outcome were not sent
	Outcomes []cluster.Outcome `json:"outcomes"`          // one per slot; of a fence step one with the answer of raise_fence as its code
}

// Plan is what one cycle does.
type Plan struct {
	Primary string `json:"primary"` // "" where there is none
	Steps   []Step `json:"steps"`
	Memory  Memory `json:"-"`
	Again   bool   `json:"again"` // something moves, or is done by this plan
	// Poll is how long to wait at most where a move on the primary is seen only by
	// reading, zero for the whole interval.
	Poll time.Duration `json:"-"`
	// Wake is how long to wait at most before the next cycle, zero for the whole
	// interval; see Unfinished too.
	Wake time.Duration `json:"wake"`
	// Awaits says what Wake waits for: per standby, the replay position at which
	// it can take the next kept read.
	Awaits map[string]cluster.LSN `json:"awaits,omitempty"`

	// What Decide found that Settle turns into verdicts and conditions.
	Verdicts   []Verdict   `json:"verdicts"` // before the outcomes
	Conditions []Condition `json:"conditions"`

	slots int    // how many are selected on the primary
	pairs []pair // what was found of each pair, in the order of Verdicts
}

// Verdict is what is said of one slot on one standby.
type Verdict struct {
	Slot     string                        `json:"slot"`
	Standby  string                        `json:"node"`
	State    State                         `json:"verdict"`
	Reason   Reason                        `json:"reason"`
	Message  string                        `json:"message"`
	Hint     string                        `json:"hint"`
	Since    time.Time                     `json:"since"`
	Mirror   cluster.Opt[cluster.Position] `json:"mirror"`
	LagBytes cluster.Opt[int64]            `json:"lag_bytes"` // the slot's confirmed_flush_lsn minus the mirror's
	ProofAge cluster.Opt[time.Duration]    `json:"-"`         // since the read that showed the mirror proven and protected
}

// Severity of a condition.
type Severity string

// The severities.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Condition is something about the cluster, a node or a slot that deserves a look.
type Condition struct {
	Code     string    `json:"code"`
	Subject  string    `json:"subject,omitempty"` // the slot or node that it is about
	Severity Severity  `json:"severity"`
	Since    time.Time `json:"since"`
	Message  string    `json:"message"`
	Hint     string    `json:"hint"`
}
