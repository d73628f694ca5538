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

// Memory is what the loop carries from cycle to cycle.
type Memory struct {
	Epoch      cluster.Epoch        `json:"epoch"`
	Led        cluster.Epoch        `json:"-"` // the epoch that what is only in memory was gathered under; another one than Epoch: Decide empties it
	Store      string               `json:"store"`
	SystemID   cluster.SystemID     `json:"system_identifier"`
	Timeline   cluster.Timeline     `json:"timeline"`
	Primary    string               `json:"primary"`
	Generation int64                `json:"generation"`      // of the hold; never falls
	Continuous int64                `json:"continuous"`      // since this generation the primary's hold was never gone: mirrors of it or later may be stamped anew
	HoldGen    int64                `json:"hold_generation"` // the generation that the primary's hold was last seen with
	Kept       map[string][]Kept    `json:"-"`
	Slots      map[string]SlotNote  `json:"slots"`
	Pairs      map[Pair]PairNote    `json:"-"`
	Standbys   map[string]NodeNote  `json:"standbys"`   // every member known, read or not
	Conditions map[string]Condition `json:"conditions"` // by code and subject, for Since
	RaisedAt   time.Time            `json:"raised_at"`
	Reigns     []Reign              `json:"reigns,omitempty"`     // the primaries that were seen, newest last
	DoubtSince time.Time            `json:"-"`                    // since when Patroni's leader is another one than the node that takes writes
	Aside      map[string]bool      `json:"-"`                    // slots that Patroni keeps itself
	GateAt     map[string]time.Time `json:"-"`                    // when synchronized_standby_slots was last set per node
	FencedAt   map[string]time.Time `json:"-"`                    // when the fence was last raised per node
	TakenOver  map[string]bool      `json:"-"`                    // nodes whose fence was taken over by Policy.TakeOver in this process
	Forgotten  map[string]bool      `json:"forgotten,omitempty"`  // members that the operator gave up; cleared when they are read again
	PromotedAt time.Time            `json:"promoted_at,omitzero"` // the first read of this primary on this timeline, where there was one before
	Orphans    map[string]time.Time `json:"-"`                    // physical slots that no member names and nobody uses, and since when
}

// Reign is a time in which a node was primary of a timeline.
type Reign struct {
	Primary  string           `json:"primary"`
	Timeline cluster.Timeline `json:"timeline"`
	Since    time.Time        `json:"since"`     // when it was first seen so
	ForkedAt cluster.LSN      `json:"forked_at"` // where its timeline left the one before; 0: not known
}

// Kept is a read of one slot on the primary that is not applied everywhere yet.
type Kept struct {
	Position   cluster.Position
	TwoPhaseAt cluster.Opt[cluster.LSN]
	At         time.Time
	Snapshot   cluster.Opt[[]byte]
	SnapshotAt cluster.Opt[cluster.LSN] // where that file belongs; absent: at Position.Restart
	Source     cluster.Incarnation
	Slot       cluster.Slot
	HoldPinned bool // the primary's hold has pinned CatalogXmin since the slot itself did
}

// SlotNote is what is remembered of a slot of the primary.
type SlotNote struct {
	Incarnation cluster.Incarnation           `json:"incarnation"`
	HighestF    cluster.LSN                   `json:"highest_confirmed"`
	HighestSent cluster.LSN                   `json:"highest_sent,omitempty"` // what its walsender was seen to have sent, on any primary
	AbsentReads int                           `json:"absent_reads"`
	AbsentAt    time.Time                     `json:"-"` // the read that AbsentReads counted last
	Last        cluster.Opt[cluster.Position] `json:"last"`
	LastAt      time.Time                     `json:"last_at"`
	Database    string                        `json:"database"`
	Plugin      string                        `json:"plugin"`
	TwoPhaseAt  cluster.Opt[cluster.LSN]      `json:"two_phase_at"`
	TwoPhase    bool                          `json:"two_phase"`
	// Before is the highest confirmed_flush_lsn that earlier primaries reported.
	// A mirror may stand there although this primary's slot does not.
	Before cluster.LSN `json:"before"`
	// Ancestors are the incarnations on earlier primaries that this slot goes
	// back to, newest last: mirrors made from them are mirrors of this slot.
	Ancestors    []cluster.Incarnation `json:"ancestors,omitempty"`
	Unproven     bool                  `json:"unproven,omitempty"`     // a mirror on a new primary that was not protected: to be dropped
	LostWith     cluster.Timeline      `json:"lost_with,omitempty"`    // it was not there on the first read of this timeline
	RestartSince time.Time             `json:"restart_since,omitzero"` // since when restart_lsn stands
	UsedAt       time.Time             `json:"used_at,omitzero"`       // when somebody was seen to use it
	Ahead        Ahead                 `json:"ahead,omitzero"`         // what its consumer has and this timeline does not
	Joined       bool                  `json:"joined,omitempty"`       // its consumer has passed this timeline's beginning
	Walk         Walk                  `json:"-"`                      // the last one that was asked for, without its file
	// Failover is the slot's own flag as it was last seen. FailoverDue: it was
	// set on an earlier primary, and is to be set again on this one.
	Failover      bool      `json:"failover,omitempty"`
	FailoverDue   bool      `json:"failover_due,omitempty"`
	FailoverTried time.Time `json:"-"` // when that was tried last, in vain
	FailoverSaid  string    `json:"-"` // what came of it
}

// NodeNote is what is remembered of a member.
type NodeNote struct {
	ReadAt     time.Time   `json:"read_at"`     // its last complete read by this leader; zero: never
	OldestXmin cluster.XID `json:"oldest_xmin"` // oldest catalog_xmin of its mirrors at that read; 0 none
	AwaySince  time.Time   `json:"away_since"`
	GivenUp    bool        `json:"given_up"`
	// MinGeneration: mirrors there of an earlier generation were left behind by
	// the hold; a hold that looks low enough later proves nothing for them.
	MinGeneration int64       `json:"min_generation,omitempty"`
	Replay        cluster.LSN `json:"replay"`                // its replay position at ReadAt
	Known         bool        `json:"known,omitempty"`       // it has been read, by this leader or one before
	StreamSlot    string      `json:"stream_slot,omitempty"` // its primary_slot_name
	SyncSlots     bool        `json:"sync_slots,omitempty"`  // the server's own worker keeps failover slots there
	WALTouched    time.Time   `json:"-"`                     // when a call last had its WAL hold in hand
}

// Pair names a slot and a standby.
type Pair struct {
	Slot    string `json:"slot"`
	Standby string `json:"standby"`
}

// PairNote is what is remembered of a pair.
type PairNote struct {
	Resume   string
	Way      string // how the mirror was proven
	Verdict  Verdict
	Judged   Verdict   // the last one while there was a primary
	ProvenAt time.Time // the read, or the apply, that last showed the mirror proven and protected
	Tried    Tried
	Ahead    cluster.LSN // where the server's copy was seen beyond what the primary had reported by then
	Outrun   Outrun      // what the slot's consumer has and the standby has not
	Touched  time.Time   // when a call last had the mirror in hand
	Dropped  bool        // the last plan dropped what was there
}

// Tried is the last change of a pair that came to nothing: the same change is
// not sent again before Policy.Interval has passed, so that the long walk of
// one slot cannot slow down the others.
type Tried struct {
	At       time.Time
	Position cluster.Position
	Snapshot bool // one was sent along
	Code     cluster.Code
	Message  string
	Hint     string
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
	Moving  bool   `json:"-"`     // a slot of the primary has moved since the last read
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
