package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Memory is what the loop carries from cycle to cycle.
type Memory struct {
	Epoch      cluster.Epoch         `json:"epoch"`
	Led        cluster.Epoch         `json:"-"` // the epoch that what is only in memory was gathered under; another one than Epoch: Decide empties it
	Store      string                `json:"store"`
	SystemID   cluster.SystemID      `json:"system_identifier"`
	Timeline   cluster.Timeline      `json:"timeline"`
	Primary    string                `json:"primary"`
	Generation int64                 `json:"generation"`      // of the hold; never falls
	Continuous int64                 `json:"continuous"`      // since this generation the primary's hold was never gone: mirrors of it or later may be stamped anew
	HoldGen    int64                 `json:"hold_generation"` // the generation that the primary's hold was last seen with
	Kept       map[string][]Kept     `json:"-"`
	Slots      map[string]SlotNote   `json:"slots"`
	Pairs      map[Pair]PairNote     `json:"-"`
	Standbys   map[string]NodeNote   `json:"standbys"`   // every member known, read or not
	Conditions map[string]Condition  `json:"conditions"` // by code and subject, for Since
	RaisedAt   time.Time             `json:"raised_at"`
	MovedAt    time.Time             `json:"-"`                    // the last read in which a slot of the primary had moved
	Reigns     []Reign               `json:"reigns,omitempty"`     // the primaries that were seen, newest last
	DoubtSince time.Time             `json:"-"`                    // since when Patroni's leader is another one than the node that takes writes
	Aside      map[string]bool       `json:"-"`                    // slots that Patroni keeps itself
	GateAt     map[string]time.Time  `json:"-"`                    // when synchronized_standby_slots was last set per node
	FencedAt   map[string]time.Time  `json:"-"`                    // when the fence was last raised per node
	TakenOver  map[string]bool       `json:"-"`                    // nodes whose fence was taken over by Policy.TakeOver in this process
	Watched    map[string]FenceWatch `json:"-"`                    // fences that refuse this controller, per node
	Server     Server                `json:"server,omitzero"`      // whose slots HighestF and Before were last read from
	Steady     cluster.Opt[bool]     `json:"-"`                    // Server has run since before this leader, so that no slot of it went back
	Forgotten  map[string]bool       `json:"forgotten,omitempty"`  // members that the operator gave up; cleared when they are read again
	PromotedAt time.Time             `json:"promoted_at,omitzero"` // the first read of this primary on this timeline, where there was one before
	Reached    cluster.LSN           `json:"-"`                    // how far Timeline is known to have been written and flushed; the ledger has it beside the standbys
	ReachedAt  time.Time             `json:"-"`                    // when that was learned; zero: before this leader
	Shown      Shown                 `json:"-"`                    // by the last answer of a writable node on Timeline
	Reset      cluster.Opt[Reset]    `json:"reset,omitzero"`       // the last primary that was put back on its timeline
	Orphans    map[string]time.Time  `json:"-"`                    // physical slots that no member names and nobody uses, and since when
}

// Reign is a time in which a node was primary of a timeline.
type Reign struct {
	Primary  string           `json:"primary"`
	Timeline cluster.Timeline `json:"timeline"`
	Since    time.Time        `json:"since"`     // when it was first seen so
	ForkedAt cluster.LSN      `json:"forked_at"` // where its timeline left the one before; 0: not known
}

// Server is one life of a primary: a slot's confirmed_flush_lsn never goes back in it.
type Server struct {
	Primary  string           `json:"primary"`
	Timeline cluster.Timeline `json:"timeline"`
	Started  time.Time        `json:"started"`
}

// Same reports whether it is one and the same life.
func (s Server) Same(other Server) bool {
	return s.Primary == other.Primary && s.Timeline == other.Timeline && s.Started.Equal(other.Started)
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
	// Before is the highest confirmed_flush_lsn that earlier primaries reported, or this
	// one before it was started last. A mirror may stand there although the slot does not.
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
	HeldForAll    time.Time   `json:"held_for_all,omitzero"` // since when its hold pinned while no older session was there any more
	Follows       bool        `json:"-"`                     // its WAL was seen to be the primary's, on this timeline
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
	Moved    bool        // the mirror stands, by nobody's use now, where no read of a primary has been
	Used     bool        // the same, by somebody's use while there was a primary
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
