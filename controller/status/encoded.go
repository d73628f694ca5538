package status

import (
	"maps"
	"reflect"
	"slices"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Encoded holds the ledger's parts as they were encoded last. Encoding a thousand
// slots is a quarter of a cycle's work, and in most cycles nothing in them has
// changed: a part is encoded anew only where something has. The zero value is
// ready. What it gives must not be altered.
type Encoded struct {
	slots      []Slot
	slotParts  map[string][]byte
	notes      map[string]plan.SlotNote
	identities map[string][]byte
}

// Slots is SlotParts.
func (e *Encoded) Slots(s Status) (map[string][]byte, error) {
	changed := map[string]bool{}
	was := make(map[string]*Slot, len(e.slots))
	for i := range e.slots {
		was[e.slots[i].Name] = &e.slots[i]
	}
	for i := range s.Slots {
		name := s.Slots[i].Name
		if old := was[name]; old == nil || !sameSlot(old, &s.Slots[i]) {
			changed[slotsPrefix+shard(name)] = true
		}
		delete(was, name)
	}
	for name := range was {
		changed[slotsPrefix+shard(name)] = true
	}
	if len(changed) > 0 {
		fresh, err := slotParts(s, changed)
		if err != nil {
			return nil, err
		}
		e.slotParts = replaced(e.slotParts, changed, fresh)
	}
	e.slots = s.Slots
	return filled(e.slotParts), nil
}

// Identities is SlotIdentities.
func (e *Encoded) Identities(mem plan.Memory) (map[string][]byte, error) {
	changed, of := map[string]bool{}, identity()
	for name, note := range mem.Slots {
		if old, ok := e.notes[name]; !ok || !reflect.DeepEqual(of(old), of(note)) {
			changed[positionsPrefix+shard(name)] = true
		}
	}
	for name := range e.notes {
		if _, ok := mem.Slots[name]; !ok {
			changed[positionsPrefix+shard(name)] = true
		}
	}
	if len(changed) > 0 {
		fresh, err := identityParts(mem, changed)
		if err != nil {
			return nil, err
		}
		e.identities = replaced(e.identities, changed, fresh)
	}
	e.notes = mem.Slots
	return filled(e.identities), nil
}

// replaced takes the changed parts from fresh; one that fresh does not have is gone.
func replaced(parts map[string][]byte, changed map[string]bool, fresh map[string][]byte) map[string][]byte {
	now := filled(maps.Clone(parts))
	for name := range changed {
		delete(now, name)
	}
	maps.Copy(now, fresh)
	return now
}

func filled(parts map[string][]byte) map[string][]byte {
	if parts == nil {
		return map[string][]byte{}
	}
	return parts
}

// sameSlot compares what slotParts writes.
func sameSlot(a, b *Slot) bool {
	return a.Database == b.Database && a.Plugin == b.Plugin && slices.EqualFunc(a.Standbys, b.Standbys, func(x, y Standby) bool {
		return x.Node == y.Node && x.Verdict == y.Verdict && x.Reason == y.Reason && x.Hint == y.Hint && x.Since.Equal(y.Since)
	})
}
