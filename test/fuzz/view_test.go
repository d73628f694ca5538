package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/jackc/pgx/v5"
)

// seenSlot is a slot as slots() shows it, its fields as SQL expressions.
type seenSlot struct {
	name, restart                            string
	change                                   arg
	want                                     arg
	incarnation                              string
	kind, marker                             string
	generation                               int64
	plugin, database, confirmed, xmin, bytes string
}

// view is what a caller knows: this node, and the slots of the primary.
type view struct {
	values
	fence      arg
	system     string
	timeline   int64
	generation int64 // of this node's hold
	originals  []seenSlot
	local      []seenSlot
}

const nodeSQL = `SELECT system_identifier, timeline, in_recovery FROM slotkeeper.node()`

const slotsSQL = `SELECT name::text, kind, coalesce(plugin::text, ''), coalesce(database_oid, 0)::text, two_phase::text,
	coalesce(two_phase_at::text, ''), coalesce(restart_lsn::text, ''), coalesce(confirmed_flush_lsn::text, ''), coalesce(catalog_xmin::text, ''),
	coalesce(encode(slotkeeper.snapshot(restart_lsn), 'hex'), ''), coalesce(incarnation::text, '(1,)'), coalesce((marker).kind, ''), coalesce((marker).generation, 0)
	FROM (SELECT * FROM slotkeeper.slots() WHERE kind = 'logical' AND restart_lsn IS NOT NULL) l
	UNION ALL SELECT name::text, kind, '', '0', 'false', '', coalesce(restart_lsn::text, ''), '', coalesce(catalog_xmin::text, ''), '',
	coalesce(incarnation::text, '(1,)'), coalesce((marker).kind, ''), coalesce((marker).generation, 0)
	FROM slotkeeper.slots() WHERE kind = 'physical'`

// fenceOf is what the callers of these tests show.
func fenceOf(epoch int64, owner, system string, timeline int64) arg {
	return composite("slotkeeper.fence", plain(aText, "'fuzz'"), plain(aText, "'store'"), plain(anEpoch, fmt.Sprint(epoch)),
		plain(aText, lit(owner)), plain(aSystemID, lit(system)), plain(aTimeline, fmt.Sprint(timeline)))
}

// look reads the node and the primary, which may be the same.
func look(ctx context.Context, r *rand.Rand, node, primary *pgx.Conn) (*view, error) {
	v := &view{values: values{rand: r}, generation: 1}
	var recovery bool
	if err := node.QueryRow(ctx, nodeSQL).Scan(&v.system, &v.timeline, &recovery); err != nil {
		return nil, err
	}
	v.fence = fenceOf(1, "me", v.system, v.timeline)
	var err error
	if v.originals, err = readSlots(ctx, primary); err != nil {
		return nil, err
	}
	if v.local, err = readSlots(ctx, node); err != nil {
		return nil, err
	}
	for _, s := range v.local {
		v.notice(s)
		if s.name == "slotkeeper_hold" && s.marker == "hold" {
			v.generation = s.generation
		}
	}
	mine := v.originals[:0]
	for _, s := range v.originals {
		v.notice(s)
		if s.kind == "logical" && strings.HasPrefix(s.name, "cdc") {
			mine = append(mine, s)
		}
	}
	v.originals = mine
	return v, nil
}

func (v *view) notice(s seenSlot) {
	v.names = append(v.names, s.name)
	v.incarnations = append(v.incarnations, s.incarnation)
	for _, lsn := range []string{s.restart, s.confirmed} {
		if lsn != "" {
			v.lsns = append(v.lsns, lsn)
		}
	}
	if s.xmin != "" {
		v.xids = append(v.xids, s.xmin)
	}
	if s.bytes != "" {
		v.snapshots = append(v.snapshots, s.bytes)
	}
	if s.kind == "logical" {
		v.databases = append(v.databases, s.database)
	}
}

func readSlots(ctx context.Context, conn *pgx.Conn) ([]seenSlot, error) {
	rows, err := conn.Query(ctx, slotsSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (seenSlot, error) {
		var s seenSlot
		var twoPhase, twoPhaseAt string
		err := row.Scan(&s.name, &s.kind, &s.plugin, &s.database, &twoPhase, &twoPhaseAt, &s.restart, &s.confirmed, &s.xmin, &s.bytes,
			&s.incarnation, &s.marker, &s.generation)
		source := plain(anIncarnation, lit(s.incarnation)+"::slotkeeper.incarnation")
		s.change = composite("slotkeeper.change", plain(aName, lit(s.name)), plain(aPlugin, lit(s.plugin)), plain(anOID, s.database),
			plain(aBool, twoPhase), orNull(anLSN, twoPhaseAt), orNull(anLSN, s.restart), orNull(anLSN, s.confirmed), orNull(anXID, s.xmin),
			snapshotArg(s.bytes), source, plain(aResume, "NULL"), plain(anLSN, "NULL"))
		s.want = composite("slotkeeper.want", orNull(anXID, s.xmin), plain(aName, lit(s.name)), source)
		return s, err
	})
}

func orNull(k kind, text string) arg {
	switch {
	case text == "":
		return plain(k, "NULL")
	case k == anLSN:
		return plain(k, lit(text)+"::pg_lsn")
	case k == anXID:
		return plain(k, lit(text)+"::xid")
	}
	return plain(k, lit(text))
}

func snapshotArg(bytes string) arg {
	if bytes == "" {
		return plain(aSnapshot, "NULL")
	}
	return plain(aSnapshot, "'\\x"+bytes+"'::bytea")
}
