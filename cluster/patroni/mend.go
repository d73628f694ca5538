package patroni

import "reflect"

// Mend gives the change of a dynamic configuration by which Patroni leaves
// slotkeeper's slots alone: all logical ones, where logical says so, and physical
// ones by name. Entries that are there stay, also those under postgresql, where
// Patroni does not look; what is no entry goes. Nil where nothing is to change.
func Mend(config map[string]any, logical bool, physical []string) map[string]any {
	postgresql := object(config).object("postgresql")
	old, usable := entries(config["ignore_slots"])
	list := append([]any{}, old...)
	misplaced, _ := entries(postgresql["ignore_slots"])
	for _, entry := range misplaced {
		list = put(list, entry.(map[string]any))
	}
	if logical {
		list = put(list, map[string]any{"type": "logical"})
	}
	for _, name := range physical {
		list = put(list, map[string]any{"name": name, "type": "physical"})
	}
	patch := map[string]any{}
	if !usable || len(list) != len(old) {
		patch["ignore_slots"] = list
	}
	if _, given := postgresql["ignore_slots"]; given {
		patch["postgresql"] = map[string]any{"ignore_slots": nil}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// entries are the mappings of a list; usable is false where Patroni could not go
// through it. A mapping alone is an entry whose dash was forgotten.
func entries(v any) (list []any, usable bool) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		return []any{m}, false
	}
	all, ok := v.([]any)
	usable = ok || !truth(v)
	for _, entry := range all {
		if m, ok := entry.(map[string]any); ok {
			list = append(list, m)
		} else {
			usable = false
		}
	}
	return list, usable
}

// put adds an entry unless one is there that matches all that it does: one with
// no field that this one has not.
func put(list []any, entry map[string]any) []any {
	for _, other := range list {
		wider := true
		for field, value := range other.(map[string]any) {
			wider = wider && (!truth(value) && field != "name" || reflect.DeepEqual(value, entry[field]))
		}
		if wider {
			return list
		}
	}
	return append(list, entry)
}
