package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Decision is the gate's answer.
type Decision struct {
	Allow bool
	// Code says in one word why: safe, primary, observed, no_safe_candidate, refusals_spent,
	// unknown, better_candidate or strict.
	Code string
	// Line is the whole answer in one line.
	Line string
	// Better is the member in whose favour this one is refused.
	Better   string
	Findings []Finding
	// Drop are the slots to be dropped before the answer is given, if it is to allow.
	Drop []string
}

// Decide answers for the candidate. Facts that are missing count neither as safe
// nor as a reason to stand in the way: in mode Prefer only another node that is
// known to be safe, and that would be taken, is one.
func Decide(now time.Time, p Policy, f Facts) Decision {
	d := Decision{}
	if f.Local.OK() && !f.Local.Value.Node.InRecovery {
		d.Allow, d.Code = true, "primary"
		d.Line = fmt.Sprintf("allow: %s is a primary already, and there is nothing to decide", f.Node)
		return d
	}
	unknown := ""
	switch {
	case !f.Local.OK():
		unknown = "its server could not be read: " + f.Local.Err
	default:
		d.Findings = examine(p, f)
		unknown = doubt(now, p, f.Ledger)
	}
	d.drops()
	if len(d.Findings) == 0 && unknown == "" {
		d.Allow, d.Code = true, "safe"
		d.Line = fmt.Sprintf("allow: %s can serve %s", f.Node, counted(len(f.Ledger.Value.expected()), "slot"))
		return d
	}
	d.weigh(now, p, f, d.trouble(f, unknown), unknown != "")
	return d
}

// Settled reports whether these facts decide, whatever the other members and the
// refusals so far may be: nobody has to wait for a dead primary's host then.
func Settled(now time.Time, p Policy, f Facts) bool {
	if !f.Local.OK() || !f.Ledger.OK() {
		return false
	}
	switch Decide(now, p, f).Code {
	case "safe", "primary", "observed", "strict":
		return true
	}
	return false
}

// doubt says why the ledger does not tell what should be there, "" where it does.
func doubt(now time.Time, p Policy, ledger plan.Fact[Ledger]) string {
	if !ledger.OK() {
		return "the ledger could not be read, so what should be there is not known: " + ledger.Err
	}
	if age := ledger.Value.age(now); age > p.MaxProofAge {
		return fmt.Sprintf("the last controller wrote %s ago, and promotion.max_proof_age is %s", age.Round(time.Second), p.MaxProofAge)
	}
	return ""
}

// weigh decides on a node that is not known to be safe.
func (d *Decision) weigh(now time.Time, p Policy, f Facts, trouble string, unknown bool) {
	switch p.Mode {
	case Observe:
		d.Allow, d.Code = true, "observed"
		d.Line = fmt.Sprintf("allow, promotion.policy is observe: %s", trouble)
		return
	case Strict:
		d.Code = "strict"
		d.Line = fmt.Sprintf("refuse, promotion.policy is strict: %s; to promote it all the same set promotion.policy to prefer or observe", trouble)
		return
	}
	name, why := better(now, p, f)
	switch {
	case name == "" && unknown && len(d.Findings) == 0:
		d.Allow, d.Code = true, "unknown"
		d.Line = fmt.Sprintf("allow: %s; and no other member is known to be better (%s)", trouble, why)
	case name == "":
		d.Allow, d.Code = true, plan.CondNoSafeCandidate
		d.Line = fmt.Sprintf("allow, no_safe_candidate: %s; no other member is better (%s); promotion.policy: strict would refuse", trouble, why)
	case f.Refusals >= p.MaxRefusals:
		d.Allow, d.Code = true, "refusals_spent"
		d.Line = fmt.Sprintf("allow after %s: %s; %s would be better and was not promoted", counted(f.Refusals, "refusal"), trouble, name)
	default:
		d.Code, d.Better = "better_candidate", name
		d.Line = fmt.Sprintf("refuse (%d of %d): %s; %s loses nothing and can be promoted", f.Refusals+1, p.MaxRefusals, trouble, name)
	}
}

// drops: only what is not proven goes, and only where it was looked at.
func (d *Decision) drops() {
	for _, found := range d.Findings {
		if found.Drop {
			d.Drop = append(d.Drop, found.Slot)
		}
	}
}

// shown is how many slots the line names; the rest is counted.
const shown = 3

func (d *Decision) trouble(f Facts, unknown string) string {
	var parts []string
	for i, found := range d.Findings {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(d.Findings)-shown))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", found.Slot, found.Reason, found.Message))
	}
	text := fmt.Sprintf("%s would not serve %s", f.Node, strings.Join(parts, ", "))
	switch {
	case len(parts) == 0:
		return f.Node + " is not known to be safe: " + unknown
	case unknown != "":
		return text + "; " + unknown
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
