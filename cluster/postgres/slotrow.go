package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// slotRow is what slotsSQL gives beside what goes into a cluster.Slot as it is.
type slotRow struct {
	slot                           cluster.Slot
	kind, snapshot                 string
	twoPhaseAt, restart, confirmed *string
	xmin, catalogXmin, effective   *uint32
	inode                          *string
	birth                          *time.Time
	marker                         markerRow
}

type markerRow struct {
	version            *int
	kind, scope, store *string
	systemID           *string
	timeline           *int64
	generation         *int64
	inode              *string
	birth              *time.Time
	way, witness       *string
	unheldBefore       *uint32
	heldSince          *time.Time
	heldFrom           *string
}

func (r *slotRow) fields() []any {
	s, m := &r.slot, &r.marker
	return []any{
		&s.Name, &r.kind, &s.Plugin, &s.Database, &s.DatabaseOID,
		&s.Temporary, &s.TwoPhase, &r.twoPhaseAt, &r.restart, &r.confirmed,
		&r.xmin, &r.catalogXmin, &r.effective,
		&s.Invalidated, &s.ActivePID,
		&r.inode, &r.birth, &s.WALok, &r.snapshot, &s.Saved,
		&m.version, &m.kind, &m.scope, &m.store, &m.systemID,
		&m.timeline, &m.generation, &m.inode, &m.birth, &m.way, &m.witness,
		&m.unheldBefore, &m.heldSince, &m.heldFrom,
		&s.Failover, &s.Synced,
	}
}

// scanSlots leaves out what has no directory any more: it is being dropped, and
// must not hide the others.
func scanSlots(rows pgx.Rows) ([]cluster.Slot, error) {
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (slotRow, error) {
		var r slotRow
		err := row.Scan(r.fields()...)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	slots := make([]cluster.Slot, 0, len(all))
	for _, r := range all {
		if r.inode == nil {
			continue
		}
		s, err := r.convert()
		if err != nil {
			return nil, fmt.Errorf("slot %q: %w", s.Name, err)
		}
		slots = append(slots, s)
	}
	return slots, nil
}

func (r *slotRow) convert() (cluster.Slot, error) {
	s := r.slot
	// A database of SQL_ASCII may have any bytes in its name; what is remembered of it
	// goes through JSON, and must come back the same.
	s.Database = strings.ToValidUTF8(s.Database, "\uFFFD")
	s.Kind, s.Snapshot = cluster.SlotKind(r.kind), cluster.SnapshotState(r.snapshot)
	if s.Kind != cluster.Physical && s.Kind != cluster.Logical {
		return s, fmt.Errorf("kind %q is neither physical nor logical", r.kind)
	}
	switch s.Snapshot {
	case "", cluster.SnapshotValid, cluster.SnapshotAbsent, cluster.SnapshotBad:
	default:
		return s, fmt.Errorf("snapshot state %q is not known", r.snapshot)
	}
	var l lsns
	s.TwoPhaseAt, s.Restart, s.Confirmed = l.opt(r.twoPhaseAt), l.opt(r.restart), l.opt(r.confirmed)
	s.Xmin, s.CatalogXmin, s.EffectiveCatalogXmin = optXID(r.xmin), optXID(r.catalogXmin), optXID(r.effective)
	if l.err != nil {
		return s, l.err
	}
	var err error
	if s.Incarnation, err = incarnation(str(r.inode), r.birth); err != nil {
		return s, err
	}
	if s.Marker, err = r.marker.convert(); err != nil {
		return s, fmt.Errorf("in its marker: %w", err)
	}
	return s, nil
}

// convert: a slot without a marker has a NULL one, all fields NULL.
func (m markerRow) convert() (*cluster.Marker, error) {
	if m.kind == nil {
		return nil, nil
	}
	out := &cluster.Marker{Kind: cluster.MarkerKind(*m.kind), Scope: str(m.scope), Store: str(m.store), Way: str(m.way)}
	switch out.Kind {
	case cluster.MarkMirror, cluster.MarkOriginal, cluster.MarkHold, cluster.MarkWAL:
	default:
		return nil, fmt.Errorf("kind %q is not known", *m.kind)
	}
	if m.version != nil {
		out.Version = *m.version
	}
	if m.generation != nil {
		out.Generation = *m.generation
	}
	var err error
	if m.systemID != nil {
		if out.SystemID, err = cluster.ParseSystemID(*m.systemID); err != nil {
			return nil, err
		}
	}
	if m.timeline != nil {
		if out.Timeline, err = timeline(*m.timeline); err != nil {
			return nil, err
		}
	}
	var l lsns
	out.Witness, out.HeldFrom = l.opt(m.witness), l.opt(m.heldFrom)
	out.UnheldBefore, out.HeldSince = optXID(m.unheldBefore), optTime(m.heldSince)
	if l.err != nil {
		return nil, l.err
	}
	if m.inode != nil {
		if out.Source, err = incarnation(*m.inode, m.birth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func incarnation(inode string, birth *time.Time) (cluster.Incarnation, error) {
	v, err := strconv.ParseUint(inode, 10, 64)
	if err != nil {
		return cluster.Incarnation{}, fmt.Errorf("inode %q is not a decimal number of 64 bits", inode)
	}
	return cluster.Incarnation{Inode: v, Birth: optTime(birth)}, nil
}
