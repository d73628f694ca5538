package patroni

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// parseSlotRules reads what decides which slots Patroni leaves alone.
func parseSlotRules(o, postgresql object) cluster.SlotRules {
	r := cluster.SlotRules{Permanent: map[string]cluster.PermanentSlot{}, Misplaced: truth(postgresql["ignore_slots"])}
	r.Ignore, r.Unusable = parseMatchers(o["ignore_slots"])
	for _, name := range []string{"permanent_replication_slots", "permanent_slots", "slots"} {
		if !truth(o[name]) {
			continue // Patroni takes the first of them that holds something
		}
		for slot, value := range o.object(name) {
			r.Permanent[slot] = parsePermanent(value)
		}
		break
	}
	return r
}

// parseMatchers reads ignore_slots. Patroni goes through it as through a list of
// mappings and fails at what is none, every time anew: then it neither drops nor
// makes any slot.
func parseMatchers(v any) (matchers []cluster.SlotMatcher, unusable string) {
	if !truth(v) {
		return nil, "" // no list, and an empty one: Patroni ignores nothing
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Sprintf("ignore_slots is %s, not a list", kindOf(v))
	}
	for i, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			matchers = append(matchers, cluster.SlotMatcher{Unusable: fmt.Sprintf("entry %d of ignore_slots is %s, not a mapping", i+1, kindOf(entry))})
			continue
		}
		matchers = append(matchers, cluster.SlotMatcher{
			Name: nameOf(fields["name"]), Type: fieldOf(fields["type"]), Database: fieldOf(fields["database"]), Plugin: fieldOf(fields["plugin"]),
		})
	}
	return matchers, ""
}

// nameOf: only a name that is not given, or null, matches every slot.
func nameOf(v any) cluster.Opt[string] {
	if v == nil {
		return cluster.None[string]()
	}
	return exactly(v)
}

// fieldOf: what Python takes for false matches every slot: "", 0, false, [], {}.
func fieldOf(v any) cluster.Opt[string] {
	if !truth(v) {
		return cluster.None[string]()
	}
	return exactly(v)
}

// exactly is a text, or for anything else one that no slot has: Python's 5 is not "5".
func exactly(v any) cluster.Opt[string] {
	if s, ok := v.(string); ok {
		return cluster.Some(s)
	}
	return cluster.Some("\x00" + shown(v))
}

// parsePermanent reads one entry of slots. Kind is "" for what Patroni refuses.
func parsePermanent(v any) cluster.PermanentSlot {
	if !truth(v) {
		return cluster.PermanentSlot{Kind: cluster.Physical}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return cluster.PermanentSlot{}
	}
	logical := truth(m["database"]) && truth(m["plugin"])
	kind, given := m["type"]
	switch {
	case !given && logical, given && text(kind) == "logical" && logical:
		return cluster.PermanentSlot{Kind: cluster.Logical, Database: text(m["database"]), Plugin: text(m["plugin"])}
	case !given, text(kind) == "physical":
		return cluster.PermanentSlot{Kind: cluster.Physical}
	}
	return cluster.PermanentSlot{}
}
