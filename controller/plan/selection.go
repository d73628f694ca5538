package plan

import (
	"path"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Selected reports whether slotkeeper manages such a slot: a permanent logical
// one that an Include matches and no Exclude does. Physical and temporary slots
// and slotkeeper's own names are never selected, whatever the patterns say.
func (p Policy) Selected(s cluster.Slot) bool {
	if s.Kind != cluster.Logical || s.Temporary || isOwnName(s.Name) {
		return false
	}
	return p.wants(s.Name, s.Database, s.Plugin)
}

func (p Policy) wants(name, database, plugin string) bool {
	return matchAny(p.Include, name, database, plugin) && !matchAny(p.Exclude, name, database, plugin)
}

func isOwnName(name string) bool {
	return name == cluster.HoldName || name == cluster.WALHoldName
}

func matchAny(ms []Match, name, database, plugin string) bool {
	for _, m := range ms {
		if m.matches(name, database, plugin) {
			return true
		}
	}
	return false
}

func (m Match) matches(name, database, plugin string) bool {
	if m == (Match{}) {
		return false
	}
	return globs(m.Name, name) && globs(m.Database, database) && globs(m.Plugin, plugin)
}

// globs: path.Match does not let "*" pass a slash, which a database's name may
// hold; a character that no name holds stands in for it. A malformed pattern
// matches nothing: the configuration refuses it before it gets here.
func globs(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(s, "/", "\x00"))
	return err == nil && ok
}
