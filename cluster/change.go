package cluster

// Change asks a standby to make or move one mirror.
type Change struct {
	Name        string      `json:"name"`
	Plugin      string      `json:"plugin"`
	DatabaseOID uint32      `json:"database_oid"`
	TwoPhase    bool        `json:"two_phase"`
	TwoPhaseAt  Opt[LSN]    `json:"two_phase_at"`
	Position    Position    `json:"position"`
	Snapshot    Opt[[]byte] `json:"-"`           // a snapshot file of the primary
	SnapshotAt  Opt[LSN]    `json:"snapshot_at"` // where the file belongs; absent: at exactly Position.Restart
	Source      Incarnation `json:"source"`
	Resume      string      `json:"resume"` // where an unfinished walk goes on, "" for a new one
}

// Want asks a node's hold to pin CatalogXmin. With a Slot, that slot (of that
// incarnation) may witness on a primary that the rows are still there. Without
// one ("") only a hold that already pins it can satisfy the want.
type Want struct {
	CatalogXmin XID         `json:"catalog_xmin"`
	Slot        string      `json:"slot"`
	Source      Incarnation `json:"source"`
}

// Code is the extension's answer for one slot.
type Code string

// The codes, as the extension's functions give them.
const (
	CodeMoved             Code = "moved"
	CodeUnchanged         Code = "unchanged"
	CodeMade              Code = "made"
	CodeReplaced          Code = "replaced"
	CodeBackward          Code = "backward"
	CodeAheadOfReplay     Code = "ahead_of_replay"
	CodeWALMissing        Code = "wal_missing"
	CodeBadSnapshot       Code = "bad_snapshot"
	CodeNoConsistentPoint Code = "no_consistent_point"
	CodeOldSession        Code = "old_session"
	CodeNotOurs           Code = "not_ours"
	CodeInUse             Code = "in_use"
	CodeInvalidated       Code = "invalidated"
	CodeDatabaseGone      Code = "database_gone"
	CodeWalLevel          Code = "wal_level"
	CodePluginMissing     Code = "plugin_missing"
	CodeNoFreeSlot        Code = "no_free_slot"
	CodeHeld              Code = "held"
	CodeNotPinned         Code = "not_pinned"
	CodeSaveFailed        Code = "save_failed"
	CodeMarked            Code = "marked"
	CodeDropped           Code = "dropped"
	CodeEnded             Code = "ended"
	CodeFenced            Code = "fenced"
	CodeForeignEpoch      Code = "foreign_epoch"
	CodeBusyFence         Code = "busy_fence"
	CodeNotInRecovery     Code = "not_in_recovery"
	CodeSysidMismatch     Code = "sysid_mismatch"
	CodeTimelineMismatch  Code = "timeline_mismatch"
	CodeRetry             Code = "retry"

	// What calls beside the extension's own answer.
	CodeSet         Code = "set"
	CodeNoPrivilege Code = "no_privilege"
)

// Outcome is what came of one slot in one step.
type Outcome struct {
	Node     string        `json:"node"`
	Name     string        `json:"name"`
	Code     Code          `json:"code"`
	Mirror   Opt[Position] `json:"mirror"` // where the slot stands after the call
	Way      string        `json:"way"`
	ProvenAt Opt[LSN]      `json:"proven_at"`
	Resume   string        `json:"resume"`
	Detail   string        `json:"detail"`
	Hint     string        `json:"hint"`
}
