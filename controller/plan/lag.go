package plan

import "fmt"

// lagWorthSaying: one WAL segment.
const lagWorthSaying = 16 << 20

// lagging looks at what a pair's verdict is at the end of the cycle: what this
// cycle has caught up with is no lag.
func lagging(v Verdict) (Condition, bool) {
	lag := v.LagBytes
	return Condition{Code: CondLag, Subject: v.Slot + "/" + v.Standby, Severity: Info,
		Message: fmt.Sprintf("the mirror of %s on %s is %d bytes behind", v.Slot, v.Standby, lag.V),
		Hint:    "after a failover the consumer would receive these again; look at the standby's replay",
	}, v.State == Safe && lag.OK && lag.V >= lagWorthSaying
}
