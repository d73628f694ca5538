package plan

import "fmt"

// noCandidate: there are slots, and no standby has all of them SAFE.
func noCandidate(verdicts []Verdict, slots int) (Condition, bool) {
	bad := map[string]bool{}
	for _, v := range verdicts {
		bad[v.Standby] = bad[v.Standby] || v.State != Safe
	}
	for _, b := range bad {
		if !b {
			return Condition{}, false
		}
	}
	if len(bad) == 0 && slots == 0 {
		return Condition{}, false
	}
	return Condition{Code: CondNoSafeCandidate, Severity: Critical,
		Message: fmt.Sprintf("none of %d standbys has all slots SAFE: a failover now would lose one", len(bad)),
		Hint:    "look at each pair's reason"}, true
}
