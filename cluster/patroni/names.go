package patroni

import (
	"fmt"
	"slices"
	"strings"
)

// longestName is as long as the name of a slot may be.
const longestName = 63

// SlotName is the physical slot through which Patroni has a member stream: lower
// case, dashes and dots as underscores, other characters as their number. Two
// members may have the same, and a server may be configured for another one: what
// counts is its own primary_slot_name.
func SlotName(member string) string {
	var name strings.Builder
	for _, r := range strings.ToLower(member) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_':
			name.WriteRune(r)
		case r == '-' || r == '.':
			name.WriteByte('_')
		default:
			fmt.Fprintf(&name, "u%04d", r)
		}
	}
	return name.String()[:min(name.Len(), longestName)]
}

// memberSlots gives the members of each physical slot's name. One that does not
// stream has none.
func memberSlots(members []Member) map[string][]string {
	slots := map[string][]string{}
	for _, m := range members {
		if name := SlotName(m.Name); !m.Tags.NoStream {
			slots[name] = append(slots[name], m.Name)
		}
	}
	for _, names := range slots {
		slices.Sort(names)
	}
	return slots
}
