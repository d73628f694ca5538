package cluster

import "time"

// The names of the two physical slots that slotkeeper makes for itself.
const (
	// HoldName pins catalog rows. It has no restart_lsn, so it pins no WAL.
	HoldName = "slotkeeper_hold"
	// WALHoldName pins, on a standby, the WAL that slots not mirrored there yet will need.
	WALHoldName = "slotkeeper_wal"
)

// SlotKind is physical or logical.
type SlotKind string

// The kinds of replication slot.
const (
	Physical SlotKind = "physical"
	Logical  SlotKind = "logical"
)

// SnapshotState says whether the snapshot file that decoding begins with is
// there: at exactly a slot's restart_lsn, or where its marker's Witness says.
type SnapshotState string

// The states of a snapshot file.
const (
	SnapshotValid  SnapshotState = "valid"
	SnapshotAbsent SnapshotState = "absent"
	SnapshotBad    SnapshotState = "bad"
)

// Incarnation tells one slot from a later one of the same name: the inode and
// the birth time of its directory. Inodes are reused at once, so both count;
// without a birth time two incarnations count as the same.
type Incarnation struct {
	Inode uint64         `json:"inode,string"`
	Birth Opt[time.Time] `json:"birth"`
}

// Same reports whether nothing shows that a and b are different directories.
func (a Incarnation) Same(b Incarnation) bool {
	if !a.Birth.OK || !b.Birth.OK {
		return true
	}
	return a.Inode == b.Inode && a.Birth.V.Equal(b.Birth.V)
}

// Position is what makes a logical slot: all three fields of one read,
// never put together from several.
type Position struct {
	Restart     LSN `json:"restart_lsn"`
	Confirmed   LSN `json:"confirmed_flush_lsn"`
	CatalogXmin XID `json:"catalog_xmin"`
}

// Behind reports whether any field of p is before the same field of q.
func (p Position) Behind(q Position) bool {
	return p.Restart < q.Restart || p.Confirmed < q.Confirmed || p.CatalogXmin.Precedes(q.CatalogXmin)
}

// Slot is a replication slot as one read of a node showed it.
type Slot struct {
	Name                 string        `json:"name"`
	Kind                 SlotKind      `json:"kind"`
	Plugin               string        `json:"plugin"`       // "" for a physical slot
	Database             string        `json:"database"`     // "" for a physical slot, or where the database is gone
	DatabaseOID          uint32        `json:"database_oid"` // 0 for a physical slot
	Temporary            bool          `json:"temporary"`
	TwoPhase             bool          `json:"two_phase"`
	TwoPhaseAt           Opt[LSN]      `json:"two_phase_at"`
	Restart              Opt[LSN]      `json:"restart_lsn"`
	Confirmed            Opt[LSN]      `json:"confirmed_flush_lsn"`
	Xmin                 Opt[XID]      `json:"xmin"`
	CatalogXmin          Opt[XID]      `json:"catalog_xmin"`
	EffectiveCatalogXmin Opt[XID]      `json:"effective_catalog_xmin"`
	Invalidated          string        `json:"invalidated"` // "" or the server's reason, such as "wal_removed"
	ActivePID            int32         `json:"active_pid"`  // 0 when nobody has it
	Incarnation          Incarnation   `json:"incarnation"`
	WALok                bool          `json:"wal_ok"` // the WAL from Restart on is in the node's pg_wal
	Snapshot             SnapshotState `json:"snapshot"`
	Saved                bool          `json:"saved"` // the state file, read back, holds what memory holds in Restart and CatalogXmin
	Marker               *Marker       `json:"marker"`
	Failover             bool          `json:"failover"` // 17 and later: the server's own worker is to copy it to standbys
	Synced               bool          `json:"synced"`   // 17 and later: such a copy; the server's, never to be touched
}

// Position gives the slot's position; false where it has none: a field NULL or
// zero, the slot invalidated, or still being made.
func (s Slot) Position() (Position, bool) {
	if s.Kind != Logical || s.Invalidated != "" {
		return Position{}, false
	}
	if s.Restart.Or(0) == 0 || s.Confirmed.Or(0) == 0 || !s.CatalogXmin.Or(0).Normal() {
		return Position{}, false
	}
	p := Position{Restart: s.Restart.V, Confirmed: s.Confirmed.V, CatalogXmin: s.CatalogXmin.V}
	return p, p.Restart <= p.Confirmed
}

// MarkerKind says what a slot with slotkeeper's marker is.
type MarkerKind string

// The kinds of marker.
const (
	MarkMirror   MarkerKind = "mirror"   // a proven copy on a standby
	MarkOriginal MarkerKind = "original" // the slot on the primary that is managed
	MarkHold     MarkerKind = "hold"
	MarkWAL      MarkerKind = "wal"
)

// Marker is the content of the file that makes a slot slotkeeper's. It lies in
// the slot's own directory and vanishes with it. A marker whose own inode,
// birth time or checksum does not match is no marker.
type Marker struct {
	Version    int         `json:"version"`
	Kind       MarkerKind  `json:"kind"`
	Scope      string      `json:"scope"`
	Store      string      `json:"store"`
	SystemID   SystemID    `json:"system_identifier"`
	Timeline   Timeline    `json:"timeline"`
	Generation int64       `json:"generation"`
	Source     Incarnation `json:"source"`
	Way        string      `json:"way"`     // how a mirror was proven: file, nothing_running, phases or later_file
	Witness    Opt[LSN]    `json:"witness"` // of way later_file: the position of that file
	// Of the hold of a standby, and of one that has been promoted: sessions there may
	// take rows that died before transaction UnheldBefore for being of no use, if they
	// began before HeldSince, and the rows died in WAL before HeldFrom; both absent
	// while it pins nothing. UnheldBefore is absent where no session can (to 13).
	UnheldBefore Opt[XID]       `json:"unheld_before"`
	HeldSince    Opt[time.Time] `json:"held_since"`
	HeldFrom     Opt[LSN]       `json:"held_from"`
}
