package status

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// The ledger lies in an etcd that others need more than we do, so it is written
// on transitions only, in parts that stay far below etcd's limits, and a part
// whose text did not change is not written again.

// ledgerVersion is the version of the ledger's documents.
const ledgerVersion = 1

// shards is into how many parts slots and positions are divided: a thousand
// slots on five standbys stay below 64 KB a part.
const shards = 64

// What the names of the parts of slots and of positions begin with.
const (
	slotsPrefix     = "slots/"
	positionsPrefix = "positions/"
)

// PartCluster is the name of the part that a new leader cannot do without.
const PartCluster = "cluster"

type clusterPart struct {
	Version    int         `json:"version"`
	Scope      string      `json:"scope"`
	Leader     Leader      `json:"leader"`
	Primary    *Primary    `json:"primary"`
	Members    []Member    `json:"members"`
	Conditions []Finding   `json:"conditions"`
	Memory     plan.Memory `json:"memory"` // without Slots, Pairs, Kept and Conditions
}

type slotsPart struct {
	Version int    `json:"version"`
	Slots   []Slot `json:"slots"` // without positions, lag and age
}

type positionsPart struct {
	Version int                      `json:"version"`
	At      time.Time                `json:"at"`
	Slots   map[string]plan.SlotNote `json:"slots"`
}

// ClusterPart is what a new leader learns from: the generation, the known
// members, the timeline. It changes on transitions only.
func ClusterPart(mem plan.Memory, s Status) ([]byte, error) {
	kept := mem
	kept.Slots, kept.Conditions = nil, nil
	kept.RaisedAt = time.Time{}
	kept.Standbys = map[string]plan.NodeNote{}
	for name, note := range mem.Standbys {
		note.ReadAt, note.Replay, note.OldestXmin = time.Time{}, 0, 0 // they move; a new leader reads them itself
		kept.Standbys[name] = note
	}
	part := clusterPart{Version: ledgerVersion, Scope: s.Scope, Leader: s.Leader, Primary: s.Primary, Memory: kept}
	for _, m := range s.Members {
		part.Members = append(part.Members, Member{Node: m.Node, Role: m.Role})
	}
	for _, f := range s.Conditions {
		f.Message = "" // it names numbers that move; the code says what it is
		part.Conditions = append(part.Conditions, f)
	}
	return encode(PartCluster, part)
}

// SlotParts gives the verdicts by part, in a form that changes on transitions
// only: numbers that move with each cycle are left out.
func SlotParts(s Status) (map[string][]byte, error) { return slotParts(s, nil) }

// slotParts gives the parts in only; all where that is nil.
func slotParts(s Status, only map[string]bool) (map[string][]byte, error) {
	byPart := map[string]*slotsPart{}
	for _, slot := range s.Slots {
		name := slotsPrefix + shard(slot.Name)
		if only != nil && !only[name] {
			continue
		}
		slot.Restart, slot.Confirmed, slot.CatalogXmin = cluster.None[cluster.LSN](), cluster.None[cluster.LSN](), cluster.None[cluster.XID]()
		standbys := make([]Standby, 0, len(slot.Standbys))
		for _, p := range slot.Standbys {
			p.Mirror, p.LagBytes, p.ProofAge = cluster.None[cluster.Position](), cluster.None[int64](), cluster.None[float64]()
			p.Message = ""
			standbys = append(standbys, p)
		}
		slot.Standbys = standbys
		if byPart[name] == nil {
			byPart[name] = &slotsPart{Version: ledgerVersion}
		}
		byPart[name].Slots = append(byPart[name].Slots, slot)
	}
	out := map[string][]byte{}
	for name, part := range byPart {
		text, err := encode(name, part)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// PositionParts gives how far each slot was seen, as of at, by part: the parts in
// only, or all where that is nil.
func PositionParts(mem plan.Memory, at time.Time, only map[string]bool) (map[string][]byte, error) {
	return noteParts(mem, at, only, func(note plan.SlotNote) plan.SlotNote { return note })
}

// SlotIdentities gives, by part of PositionParts, what a new leader must not
// miss for a moment: which slots there are, and which ones they are. It changes
// on transitions only.
func SlotIdentities(mem plan.Memory) (map[string][]byte, error) { return identityParts(mem, nil) }

// identityParts gives the parts in only; all where that is nil.
func identityParts(mem plan.Memory, only map[string]bool) (map[string][]byte, error) {
	return noteParts(mem, time.Time{}, only, identity())
}

// identity takes from a note what SlotIdentities writes.
func identity() func(plan.SlotNote) plan.SlotNote {
	return func(note plan.SlotNote) plan.SlotNote {
		return plan.SlotNote{
			Incarnation: note.Incarnation, Database: note.Database, Plugin: note.Plugin, TwoPhase: note.TwoPhase,
			Before: note.Before, Ancestors: note.Ancestors, Unproven: note.Unproven, LostWith: note.LostWith,
			Failover: note.Failover, FailoverDue: note.FailoverDue, Ahead: note.Ahead, Joined: note.Joined,
		}
	}
}

func noteParts(mem plan.Memory, at time.Time, only map[string]bool, of func(plan.SlotNote) plan.SlotNote) (map[string][]byte, error) {
	byPart := map[string]*positionsPart{}
	for slot, note := range mem.Slots {
		name := positionsPrefix + shard(slot)
		if only != nil && !only[name] {
			continue
		}
		if byPart[name] == nil {
			byPart[name] = &positionsPart{Version: ledgerVersion, At: at, Slots: map[string]plan.SlotNote{}}
		}
		byPart[name].Slots[slot] = of(note)
	}
	out := map[string][]byte{}
	for name, part := range byPart {
		text, err := encode(name, part)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// Recall gives a new leader the memory that the ledger holds. An empty ledger
// gives an empty memory; a document of a newer version is refused.
func Recall(parts map[string][]byte) (plan.Memory, error) {
	var whole clusterPart
	if err := decode(parts, PartCluster, &whole, &whole.Version); err != nil {
		return plan.Memory{}, err
	}
	mem := whole.Memory
	mem.Slots = map[string]plan.SlotNote{}
	for name := range parts {
		if !strings.HasPrefix(name, positionsPrefix) {
			continue
		}
		var part positionsPart
		if err := decode(parts, name, &part, &part.Version); err != nil {
			return plan.Memory{}, err
		}
		for slot, note := range part.Slots {
			mem.Slots[slot] = note
		}
	}
	return mem, nil
}

// FromLedger gives the document as a follower, or a command without a daemon,
// can know it: verdicts and their reasons, positions as old as they are.
func FromLedger(parts map[string][]byte) (Status, error) {
	var whole clusterPart
	if err := decode(parts, PartCluster, &whole, &whole.Version); err != nil {
		return Status{}, err
	}
	s := Status{
		SchemaVersion: SchemaVersion, Scope: whole.Scope, Source: "ledger",
		Leader: whole.Leader, Primary: whole.Primary, Members: whole.Members, Conditions: whole.Conditions,
		Slots: []Slot{},
	}
	notes, at, err := positions(parts)
	if err != nil {
		return Status{}, err
	}
	s.At, s.ObservedAt = at, at
	rows := map[string]*Slot{}
	for name := range parts {
		if !strings.HasPrefix(name, slotsPrefix) {
			continue
		}
		var part slotsPart
		if err := decode(parts, name, &part, &part.Version); err != nil {
			return Status{}, err
		}
		for _, slot := range part.Slots {
			if p := notes[slot.Name].Last; p.OK {
				slot.Restart, slot.Confirmed = cluster.Some(p.V.Restart), cluster.Some(p.V.Confirmed)
				slot.CatalogXmin = cluster.Some(p.V.CatalogXmin)
			}
			rows[slot.Name] = &slot
		}
	}
	s.Slots = sorted(rows)
	return s, nil
}

// positions gives the notes of all parts and the age of the oldest.
func positions(parts map[string][]byte) (map[string]plan.SlotNote, time.Time, error) {
	notes := map[string]plan.SlotNote{}
	var oldest time.Time
	for name := range parts {
		if !strings.HasPrefix(name, positionsPrefix) {
			continue
		}
		var part positionsPart
		if err := decode(parts, name, &part, &part.Version); err != nil {
			return nil, time.Time{}, err
		}
		if len(part.Slots) > 0 && (oldest.IsZero() || part.At.Before(oldest)) {
			oldest = part.At
		}
		for slot, note := range part.Slots {
			notes[slot] = note
		}
	}
	return notes, oldest, nil
}

func shard(slot string) string {
	h := fnv.New32a()
	h.Write([]byte(slot))
	n := h.Sum32() % shards
	return string([]byte{'0' + byte(n/10), '0' + byte(n%10)})
}

func encode(name string, part any) ([]byte, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encoding the ledger's part %s: %w", name, err)
	}
	return text, nil
}

// decode reads a part that may be missing. version points into the part.
func decode(parts map[string][]byte, name string, part any, version *int) error {
	text, ok := parts[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(text, part); err != nil {
		return fmt.Errorf("reading the ledger's part %s: %w", name, err)
	}
	if *version > ledgerVersion {
		return fmt.Errorf("the ledger's part %s has version %d, this program knows up to %d: use a newer slotkeeper", name, *version, ledgerVersion)
	}
	return nil
}

// Emptied gives the text of a part whose last slot is gone; false for a part
// that holds no slots by name.
func Emptied(name string) ([]byte, bool) {
	switch {
	case strings.HasPrefix(name, slotsPrefix):
		return fmt.Appendf(nil, `{"version":%d,"slots":[]}`, ledgerVersion), true
	case strings.HasPrefix(name, positionsPrefix):
		return fmt.Appendf(nil, `{"version":%d,"slots":{}}`, ledgerVersion), true
	}
	return nil, false
}
