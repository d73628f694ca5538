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
// on transitions, and what moves by itself now and then; in parts that stay far
// below etcd's limits, all of one write in one transaction.

// ledgerVersion is the version of the ledger's documents.
const ledgerVersion = 1

// shards is into how many parts slots and positions are divided. Twice as many
// and two more must fit into one transaction of etcd, which takes 128.
const shards = 60

// What the names of the parts of slots and of positions begin with.
const (
	slotsPrefix     = "slots/"
	positionsPrefix = "positions/"
)

// The parts that there is one of.
const (
	PartCluster  = "cluster"  // what a new leader cannot do without
	PartStandbys = "standbys" // the state of each standby
)

// Document is one part of the ledger. What only Text says may move with every
// cycle: that alone is no reason to write. One whose Identity has changed is due
// at once.
type Document struct {
	Text     []byte
	Identity string
}

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
	Version int                         `json:"version"`
	At      time.Time                   `json:"at"`
	Slots   map[string]plan.SlotNote    `json:"slots"`
	Mirrors map[string]map[string]Proof `json:"mirrors,omitempty"` // by slot and standby
}

// Proof is where a mirror stands and why it may be relied on.
type Proof struct {
	cluster.Position
	Way      string    `json:"way"`       // how it was proven
	ProvenAt time.Time `json:"proven_at"` // when it was last seen proven and protected
}

type standbysPart struct {
	Version  int                      `json:"version"`
	At       time.Time                `json:"at"`
	Standbys map[string]plan.NodeNote `json:"standbys"`
	Reached  *reached                 `json:"reached,omitempty"`
}

// reached is how far a timeline is known to have been written.
type reached struct {
	Timeline cluster.Timeline `json:"timeline"`
	LSN      cluster.LSN      `json:"lsn"`
}

// ClusterPart is what a new leader learns from: the generation, the known
// members, the timelines.
func ClusterPart(mem plan.Memory, s Status) (Document, error) {
	kept := mem
	kept.Slots, kept.Conditions = nil, nil
	kept.RaisedAt = time.Time{}
	kept.Standbys = map[string]plan.NodeNote{}
	for name, note := range mem.Standbys {
		kept.Standbys[name] = still(note)
	}
	part := clusterPart{Version: ledgerVersion, Scope: s.Scope, Leader: s.Leader, Primary: s.Primary, Memory: kept}
	for _, m := range s.Members {
		part.Members = append(part.Members, Member{Node: m.Node, Role: m.Role})
	}
	part.Conditions = s.Conditions
	text, err := encode(PartCluster, part)
	if err != nil {
		return Document{}, err
	}
	part.Conditions = nil
	for _, f := range s.Conditions {
		f.Message = "" // it names numbers that move; the code says what it is
		part.Conditions = append(part.Conditions, f)
	}
	identity, err := encode(PartCluster, part)
	return Document{Text: text, Identity: string(identity)}, err
}

// still is a standby's note without what moves; a new leader reads that itself.
func still(note plan.NodeNote) plan.NodeNote {
	note.ReadAt, note.Replay, note.OldestXmin = time.Time{}, 0, 0
	return note
}

// SlotParts gives the verdicts by part, in a form that changes on transitions
// only: numbers that move with each cycle are left out.
func SlotParts(s Status) (map[string][]byte, error) { return slotParts(s, nil) }

// slotParts gives the parts in only; all where that is nil.
func slotParts(s Status, only map[string]bool) (map[string][]byte, error) {
	return rowParts(s, only, func(p *Standby) { p.Message = "" })
}

// SlotTexts gives the parts in only as they are stored, all where that is nil.
// Messages name numbers that move: they are as they were when the verdict came.
func SlotTexts(s Status, only map[string]bool) (map[string][]byte, error) {
	return rowParts(s, only, func(*Standby) {})
}

func rowParts(s Status, only map[string]bool, change func(*Standby)) (map[string][]byte, error) {
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
			change(&p)
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
	parts := notesByPart(mem, at, only, func(note plan.SlotNote) plan.SlotNote { return note })
	for pair, note := range mem.Pairs {
		part := parts[positionsPrefix+shard(pair.Slot)]
		if part == nil || !note.Verdict.Mirror.OK {
			continue
		}
		if part.Mirrors == nil {
			part.Mirrors = map[string]map[string]Proof{}
		}
		if part.Mirrors[pair.Slot] == nil {
			part.Mirrors[pair.Slot] = map[string]Proof{}
		}
		part.Mirrors[pair.Slot][pair.Standby] = Proof{Position: note.Verdict.Mirror.V, Way: note.Way, ProvenAt: note.ProvenAt}
	}
	return encodeAll(parts)
}

// StandbysPart is the state of each standby as of at, and how far the primary's WAL
// is known to have been written.
func StandbysPart(mem plan.Memory, at time.Time) ([]byte, error) {
	standbys := mem.Standbys
	if standbys == nil {
		standbys = map[string]plan.NodeNote{} // {}: none is known; null is no answer
	}
	part := standbysPart{Version: ledgerVersion, At: at, Standbys: standbys}
	if mem.Reached != 0 {
		part.Reached = &reached{Timeline: mem.Timeline, LSN: mem.Reached}
	}
	return encode(PartStandbys, part)
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
	return encodeAll(notesByPart(mem, at, only, of))
}

func notesByPart(mem plan.Memory, at time.Time, only map[string]bool, of func(plan.SlotNote) plan.SlotNote) map[string]*positionsPart {
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
	return byPart
}

func encodeAll(parts map[string]*positionsPart) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, part := range parts {
		text, err := encode(name, part)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

func shard(slot string) string {
	h := fnv.New32a()
	h.Write([]byte(slot))
	return fmt.Sprintf("%02d", h.Sum32()%shards)
}

func encode(name string, part any) ([]byte, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encoding the ledger's part %s: %w", name, err)
	}
	return text, nil
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
