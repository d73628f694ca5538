package status

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// SchemaVersion is the version of the document's shape. Fields may be added
// within a version; a change of meaning makes a new one.
const SchemaVersion = 1

// Status is the document.
type Status struct {
	SchemaVersion int        `json:"schema_version"`
	Scope         string     `json:"scope"`
	At            time.Time  `json:"at"`          // when it was published
	ObservedAt    time.Time  `json:"observed_at"` // when the observation that it shows began
	Complete      bool       `json:"complete"`    // a primary and every member answered
	Source        string     `json:"source"`      // daemon, or ledger: older, without positions of this moment
	Cycle         uint64     `json:"cycle"`
	Leader        Leader     `json:"leader"`
	Primary       *Primary   `json:"primary"` // null where there is none
	Members       []Member   `json:"members"`
	Slots         []Slot     `json:"slots"`
	Conditions    []Finding  `json:"conditions"`
	Hold          *HoldState `json:"hold"`
}

// Leader is the controller that wrote the document.
type Leader struct {
	Name  string        `json:"name"`
	Epoch cluster.Epoch `json:"epoch"`
}

// Primary is the writable node.
type Primary struct {
	Node     string           `json:"node"`
	Timeline cluster.Timeline `json:"timeline"`
	SystemID cluster.SystemID `json:"system_identifier"`
}

// Member is one node of the topology.
type Member struct {
	Node   string                   `json:"node"`
	Role   string                   `json:"role"` // primary, standby or unknown
	Error  string                   `json:"error,omitempty"`
	Hint   string                   `json:"hint,omitempty"` // what to do about Error
	Replay cluster.Opt[cluster.LSN] `json:"replay_lsn"`
}

// HoldState is how far back the primary's hold pins catalog rows.
type HoldState struct {
	CatalogXmin cluster.Opt[cluster.XID] `json:"catalog_xmin"`
	Generation  int64                    `json:"generation"`
}

// Slot is one selected slot of the primary with its standbys.
type Slot struct {
	Name        string                   `json:"name"`
	Database    string                   `json:"database"`
	Plugin      string                   `json:"plugin"`
	Restart     cluster.Opt[cluster.LSN] `json:"restart_lsn"`
	Confirmed   cluster.Opt[cluster.LSN] `json:"confirmed_flush_lsn"`
	CatalogXmin cluster.Opt[cluster.XID] `json:"catalog_xmin"`
	Standbys    []Standby                `json:"standbys"`
}

// Standby is the verdict of one slot on one standby.
type Standby struct {
	Node     string                        `json:"node"`
	Verdict  plan.State                    `json:"verdict"`
	Reason   plan.Reason                   `json:"reason"`
	Message  string                        `json:"message"`
	Hint     string                        `json:"hint"`
	Since    time.Time                     `json:"since"`
	Mirror   cluster.Opt[cluster.Position] `json:"mirror"`
	LagBytes cluster.Opt[int64]            `json:"lag_bytes"`
	ProofAge cluster.Opt[float64]          `json:"proof_age_seconds"`
}

// Finding is a condition of the cluster, a node or a slot.
type Finding struct {
	Code     string        `json:"code"`
	Subject  string        `json:"subject,omitempty"`
	Severity plan.Severity `json:"severity"`
	Since    time.Time     `json:"since"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint"`
}

// Worst is the worst verdict of all pairs; plan.Safe where there is no pair.
func (s Status) Worst() plan.State {
	worst := plan.Safe
	for _, slot := range s.Slots {
		for _, pair := range slot.Standbys {
			if rank(pair.Verdict) > rank(worst) {
				worst = pair.Verdict
			}
		}
	}
	return worst
}

// AllSafe reports whether the document shows at least one pair and each is SAFE.
func (s Status) AllSafe() bool {
	pairs := 0
	for _, slot := range s.Slots {
		if len(slot.Standbys) == 0 {
			return false
		}
		pairs += len(slot.Standbys)
	}
	return pairs > 0 && s.Worst() == plan.Safe
}

// ExitCode is the status command's: 0 all SAFE (also where there is no slot at
// all), 3 something is not, a slot without any standby included, 4 unknown (no
// primary, or nothing worse than a pair that nobody can see).
func (s Status) ExitCode() int {
	switch s.Worst() {
	case plan.Safe:
		if s.Primary == nil {
			return 4
		}
		for _, slot := range s.Slots {
			if len(slot.Standbys) == 0 {
				return 3
			}
		}
		return 0
	case plan.Unknown:
		return 4
	}
	return 3
}

// rank orders states for Worst. UNKNOWN is below what is known to be bad: a
// dead standby must not hide an unsafe one.
func rank(s plan.State) int {
	switch s {
	case plan.Safe:
		return 0
	case plan.Unknown:
		return 1
	case plan.Pending:
		return 2
	case plan.Unsafe:
		return 3
	}
	return 4
}
