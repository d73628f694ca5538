package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// orHint prefers the hint of who met the trouble: it names the host and the role.
func orHint(own, otherwise string) string {
	if own != "" {
		return own
	}
	return otherwise
}

func lsnText(l cluster.Opt[cluster.LSN]) string {
	if !l.OK || l.V == 0 {
		return "no position"
	}
	return l.V.String()
}

func lastText(n SlotNote) string {
	if !n.Last.OK {
		return "an unknown position"
	}
	return fmt.Sprintf("%s (restart_lsn %s) at %s", n.Last.V.Confirmed, n.Last.V.Restart, n.LastAt.UTC().Format(time.RFC3339))
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// behindText says how far have is behind need: "needs 0/300A0, has 0/2FF00 (416 bytes behind)".
func behindText(need cluster.LSN, verb string, have cluster.Opt[cluster.LSN]) string {
	if !have.OK || have.V == 0 {
		return fmt.Sprintf("needs %s, %s nothing yet", need, verb)
	}
	if have.V >= need {
		return fmt.Sprintf("needs %s, %s %s", need, verb, have.V)
	}
	return fmt.Sprintf("needs %s, %s %s (%d bytes behind)", need, verb, have.V, uint64(need-have.V))
}

// sentence joins the parts that are there.
func sentence(parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, strings.TrimSuffix(p, "."))
		}
	}
	return strings.Join(there, ": ")
}

// joined lists the parts as words.
func joined(parts []string) string { return strings.Join(parts, ", and ") }
