package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// leadership is what one observation says of who is primary.
type leadership struct {
	systemID cluster.SystemID   // 0: not known
	primary  string             // "" where there is none to write to
	read     NodeRead           // of the primary
	trouble  *Condition         // why there is none
	reset    cluster.Opt[Reset] // the one writable node, where it was put back
	shown    Shown              // of the one writable node
	wrong    map[string]cluster.SystemID
}

// FindPrimary names the primary: the one writable node of the known system
// identifier on the highest timeline known. "" where there is none, or where a
// second writable node means that nothing may be written.
func FindPrimary(o Observation, m Memory) string { return findPrimary(o, m).primary }

func findPrimary(o Observation, m Memory) leadership {
	l := leadership{systemID: knownSystem(o, m), wrong: map[string]cluster.SystemID{}}
	var writable []string
	for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
		fact := o.Nodes[name]
		if !fact.OK() {
			continue
		}
		if id := fact.Value.Node.SystemID; id != l.systemID || l.systemID == 0 {
			l.wrong[name] = id
			continue
		}
		if !fact.Value.Node.InRecovery {
			writable = append(writable, name)
		}
	}
	l.choose(writable, o, m)
	return l
}

// choose takes the one writable node. A server that was primary on a timeline
// that has been left is never it, also while the newer primary is silent.
func (l *leadership) choose(writable []string, o Observation, m Memory) {
	switch len(writable) {
	case 0:
		l.trouble = &Condition{Code: CondNoLeader, Severity: Critical, Message: noLeaderMessage(o, l),
			Hint: "mirrors stay as they are; look at why members do not answer, promote a standby whose verdicts were SAFE, or bring the primary back"}
		return
	case 1:
	default:
		l.trouble = &Condition{Code: CondSplitBrain, Severity: Critical,
			Message: fmt.Sprintf("%s take writes at the same time (%s): nothing is written anywhere", strings.Join(writable, " and "), timelines(writable, o)),
			Hint:    "stop the one that must not be primary; slotkeeper goes on by itself when one is left"}
		return
	}
	name := writable[0]
	read := o.Nodes[name].Value
	if l.trouble = l.putBack(name, o.Nodes[name], m); l.trouble != nil {
		return
	}
	if read.Node.Timeline >= m.Timeline {
		l.primary, l.read = name, read
		return
	}
	if name == m.Primary {
		l.trouble = &Condition{Code: CondTimelineReset, Severity: Critical,
			Message: fmt.Sprintf("%s is on timeline %d although it was seen on timeline %d: it was restored or reset", name, read.Node.Timeline, m.Timeline),
			Hint:    "if that was meant, stop slotkeeper, remove its ledger and start it again; its mirrors must be made anew"}
		return
	}
	l.trouble = &Condition{Code: CondSplitBrain, Severity: Critical,
		Message: fmt.Sprintf("%s takes writes on timeline %d, but %s is primary of timeline %d: nothing is written anywhere", name, read.Node.Timeline, m.Primary, m.Timeline),
		Hint:    fmt.Sprintf("%s is an old primary: stop it and make it a standby of the new one", name)}
}

func timelines(names []string, o Observation) string {
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s on timeline %d", n, o.Nodes[n].Value.Node.Timeline))
	}
	return strings.Join(parts, ", ")
}

func noLeaderMessage(o Observation, l *leadership) string {
	if l.systemID == 0 && len(l.wrong) > 1 {
		return "the members belong to different clusters: their system identifiers differ and none is known to be right"
	}
	answering := 0
	for _, f := range o.Nodes {
		if f.OK() {
			answering++
		}
	}
	if answering == 0 {
		return fmt.Sprintf("none of %d members answers", len(o.Nodes))
	}
	return fmt.Sprintf("no member takes writes: %d of %d answer, all of them in recovery or of another cluster", answering, len(o.Nodes))
}

// knownSystem is the remembered identifier; a controller that remembers none
// takes the one that most members have, then the one with a writable member.
func knownSystem(o Observation, m Memory) cluster.SystemID {
	if m.SystemID != 0 {
		return m.SystemID
	}
	members := map[cluster.SystemID]int{}
	for _, f := range o.Nodes {
		if f.OK() && f.Value.Node.SystemID != 0 {
			members[f.Value.Node.SystemID]++
		}
	}
	most := 0
	for _, n := range members {
		most = max(most, n)
	}
	var best []cluster.SystemID
	for id, n := range members {
		if n == most {
			best = append(best, id)
		}
	}
	if len(best) > 1 {
		best = slices.DeleteFunc(best, func(id cluster.SystemID) bool { return !hasWritable(o, id) })
	}
	if len(best) != 1 {
		return 0
	}
	return best[0]
}

func hasWritable(o Observation, id cluster.SystemID) bool {
	for _, f := range o.Nodes {
		if f.OK() && f.Value.Node.SystemID == id && !f.Value.Node.InRecovery {
			return true
		}
	}
	return false
}
