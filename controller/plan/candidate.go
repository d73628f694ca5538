package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// How many standbys, and slots of each, the condition names; the rest is counted.
const (
	namedStandbys = 3
	namedLosses   = 3
)

// noCandidate: there are slots, and no standby has all of them SAFE. It names what a
// failover to each would lose.
func noCandidate(verdicts []Verdict, slots int) (Condition, bool) {
	losses := map[string][]string{}
	for _, v := range verdicts {
		if _, seen := losses[v.Standby]; !seen {
			losses[v.Standby] = nil
		}
		if v.State != Safe {
			losses[v.Standby] = append(losses[v.Standby], fmt.Sprintf("%s (%s)", v.Slot, v.Reason))
		}
	}
	for _, lost := range losses {
		if len(lost) == 0 {
			return Condition{}, false
		}
	}
	if len(losses) == 0 && slots == 0 {
		return Condition{}, false
	}
	text := fmt.Sprintf("none of %d standbys has all slots SAFE", len(losses))
	for i, name := range slices.Sorted(maps.Keys(losses)) {
		if i == namedStandbys {
			text += fmt.Sprintf("; and %d more", len(losses)-namedStandbys)
			break
		}
		lost := losses[name]
		slices.Sort(lost)
		if more := len(lost) - namedLosses; more > 0 {
			lost = append(lost[:namedLosses:namedLosses], fmt.Sprintf("and %d more", more))
		}
		text += fmt.Sprintf("; a failover to %s would lose %s", name, strings.Join(lost, ", "))
	}
	return Condition{Code: CondNoSafeCandidate, Severity: Critical, Message: text,
		Hint: "look at each pair's hint; promotion.policy says whether such a standby is promoted all the same (prefer, observe) or not (strict)"}, true
}
