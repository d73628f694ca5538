package status

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// NewerError says that a newer program wrote the ledger: this one must neither
// write it nor lead.
type NewerError struct {
	Part    string
	Version int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the ledger's part %s has version %d, this program knows up to %d: use a newer slotkeeper", e.Part, e.Version, ledgerVersion)
}

// packFrom is from how many bytes on a part is packed: small ones are for eyes too.
const packFrom = 2 << 10

// maxUnpacked bounds what a part may hold, whoever packed it.
const maxUnpacked = 16 << 20

// Packed is a part's text as it is stored: large ones by gzip, which makes a
// tenth of what is mostly the same words.
func Packed(text []byte) ([]byte, error) {
	if len(text) < packFrom {
		return text, nil
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("packing a part of the ledger: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing a part of the ledger: %w", err)
	}
	return out.Bytes(), nil
}

func unpacked(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		return text, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxUnpacked))
}

// Known fails with a *NewerError where a part of the ledger is of a newer program,
// and with another error where a part is not one that slotkeeper has written.
func Known(parts map[string][]byte) error {
	for name := range parts {
		var any versioned
		if err := decode(parts, name, &any, &any.Version); err != nil {
			return err
		}
		if err := whole(name, any.fields); err != nil {
			return err
		}
	}
	return nil
}

// versioned is a part of whatever kind: its version, and its fields as they are.
type versioned struct {
	Version int `json:"version"`
	fields  map[string]json.RawMessage
}

func (v *versioned) UnmarshalJSON(text []byte) error {
	type plain versioned // without this method
	if err := json.Unmarshal(text, (*plain)(v)); err != nil {
		return err
	}
	return json.Unmarshal(text, &v.fields)
}

// The fields without which no part of a kind is ever written. Without them it
// would say that there is no slot, or no generation, and be believed.
var (
	writtenCluster  = []string{"scope", "leader", "memory"}
	writtenMemory   = []string{"system_identifier", "timeline", "generation"}
	writtenStandbys = []string{"at", "standbys"}
	writtenSlots    = []string{"slots"} // of slots and of positions
)

// whole refuses a part that lacks what every part of its kind has.
func whole(name string, fields map[string]json.RawMessage) error {
	switch {
	case name == PartCluster:
		if err := has(name, fields, writtenCluster); err != nil {
			return err
		}
		var memory map[string]json.RawMessage
		if err := json.Unmarshal(fields["memory"], &memory); err != nil {
			return fmt.Errorf("reading the memory in the ledger's part %s: %w; %s", name, err, foreignHint)
		}
		return has(name, memory, writtenMemory)
	case name == PartStandbys:
		return has(name, fields, writtenStandbys)
	case strings.HasPrefix(name, slotsPrefix), strings.HasPrefix(name, positionsPrefix):
		return has(name, fields, writtenSlots)
	}
	return nil
}

func has(name string, fields map[string]json.RawMessage, wanted []string) error {
	for _, field := range wanted {
		if text, ok := fields[field]; !ok || string(text) == "null" {
			return fmt.Errorf("the ledger's part %s has no %q; %s", name, field, foreignHint)
		}
	}
	return nil
}

// Recall gives a new leader the memory that the ledger holds. An empty ledger
// gives an empty memory; any part of a newer version is a *NewerError.
func Recall(parts map[string][]byte) (plan.Memory, error) {
	if err := Known(parts); err != nil {
		return plan.Memory{}, err
	}
	var whole clusterPart
	if err := decode(parts, PartCluster, &whole, &whole.Version); err != nil {
		return plan.Memory{}, err
	}
	seen, err := positions(parts)
	if err != nil {
		return plan.Memory{}, err
	}
	standbys, err := standbyNotes(parts)
	if err != nil {
		return plan.Memory{}, err
	}
	mem := whole.Memory
	mem.Slots = seen.notes
	if mem.Pairs, err = moved(parts); err != nil {
		return plan.Memory{}, err
	}
	if r := standbys.Reached; r != nil && r.Timeline == mem.Timeline {
		mem.Reached = r.LSN
	}
	return mem, nil
}

// moved are the mirrors that somebody was seen to have moved: they must not outlive a
// promotion either that comes before the next leader.
func moved(parts map[string][]byte) (map[plan.Pair]plan.PairNote, error) {
	pairs := map[plan.Pair]plan.PairNote{}
	for name := range parts {
		if !strings.HasPrefix(name, slotsPrefix) {
			continue
		}
		var part slotsPart
		if err := decode(parts, name, &part, &part.Version); err != nil {
			return nil, err
		}
		for _, slot := range part.Slots {
			for _, p := range slot.Standbys {
				if p.Reason == plan.ReasonMirrorAhead {
					pairs[plan.Pair{Slot: slot.Name, Standby: p.Node}] = plan.PairNote{Moved: true}
				}
			}
		}
	}
	return pairs, nil
}

// FromLedger gives the document as a follower, or a command without a daemon,
// can know it: verdicts and their reasons, positions as old as they are.
func FromLedger(parts map[string][]byte) (Status, error) {
	if err := Known(parts); err != nil {
		return Status{}, err
	}
	var whole clusterPart
	if err := decode(parts, PartCluster, &whole, &whole.Version); err != nil {
		return Status{}, err
	}
	s := Status{
		SchemaVersion: SchemaVersion, Scope: whole.Scope, Source: "ledger",
		Leader: whole.Leader, Primary: whole.Primary, Members: whole.Members, Conditions: whole.Conditions,
		Slots: []Slot{},
	}
	seen, err := positions(parts)
	if err != nil {
		return Status{}, err
	}
	standbys, err := standbyNotes(parts)
	if err != nil {
		return Status{}, err
	}
	// Positions may be older: in a large cluster they are written less often.
	s.At, s.ObservedAt = seen.oldest, standbys.At
	for i, m := range s.Members {
		if at := standbys.Standbys[m.Node].Replay; at != 0 && m.Role == "standby" {
			s.Members[i].Replay = cluster.Some(at)
		}
	}
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
			seen.place(&slot)
			rows[slot.Name] = &slot
		}
	}
	s.Slots = sorted(rows)
	return s, nil
}

func standbyNotes(parts map[string][]byte) (standbysPart, error) {
	var part standbysPart
	err := decode(parts, PartStandbys, &part, &part.Version)
	return part, err
}

// placed is what the parts of positions say together.
type placed struct {
	notes   map[string]plan.SlotNote
	mirrors map[string]map[string]Proof
	oldest  time.Time // of the parts
}

func positions(parts map[string][]byte) (placed, error) {
	all := placed{notes: map[string]plan.SlotNote{}, mirrors: map[string]map[string]Proof{}}
	for name := range parts {
		if !strings.HasPrefix(name, positionsPrefix) {
			continue
		}
		var part positionsPart
		if err := decode(parts, name, &part, &part.Version); err != nil {
			return placed{}, err
		}
		if len(part.Slots) > 0 && (all.oldest.IsZero() || part.At.Before(all.oldest)) {
			all.oldest = part.At
		}
		for slot, note := range part.Slots {
			all.notes[slot], all.mirrors[slot] = note, part.Mirrors[slot]
		}
	}
	return all, nil
}

// place gives a slot's row the positions that were last written.
func (p placed) place(slot *Slot) {
	if at := p.notes[slot.Name].Last; at.OK {
		slot.Restart, slot.Confirmed = cluster.Some(at.V.Restart), cluster.Some(at.V.Confirmed)
		slot.CatalogXmin = cluster.Some(at.V.CatalogXmin)
	}
	for i := range slot.Standbys {
		if proof, ok := p.mirrors[slot.Name][slot.Standbys[i].Node]; ok {
			slot.Standbys[i].Mirror = cluster.Some(proof.Position)
		}
	}
}

// foreignHint is what to do about a part that slotkeeper cannot have written.
const foreignHint = "slotkeeper did not write it: where the ledger is lost for good, delete the keys below etcd.prefix/scope/ledger/"

// decode reads a part that may be missing. version points into the part.
func decode(parts map[string][]byte, name string, part any, version *int) error {
	text, ok := parts[name]
	if !ok {
		return nil
	}
	text, err := unpacked(text)
	if err != nil {
		return fmt.Errorf("unpacking the ledger's part %s: %w; %s", name, err, foreignHint)
	}
	if err := json.Unmarshal(text, part); err != nil {
		return fmt.Errorf("reading the ledger's part %s: %w; %s", name, err, foreignHint)
	}
	switch {
	case *version > ledgerVersion:
		return &NewerError{Part: name, Version: *version}
	case *version < 1: // null, for one: it would be a ledger that knows of no slot
		return fmt.Errorf("the ledger's part %s has no version; %s", name, foreignHint)
	}
	return nil
}
