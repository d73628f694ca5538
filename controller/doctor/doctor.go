package doctor

import (
	"cmp"
	"slices"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Member is a member of the topology as two looks at it showed it. Inspection
// needs no privilege, Read needs everything; either may have failed.
type Member struct {
	Name       string
	Inspection plan.Fact[cluster.Inspection]
	Read       plan.Fact[plan.NodeRead]
}

// Etcd is what is known of the etcd that keeps leadership and ledger.
type Etcd struct {
	Err     string // why nothing is known, "" where it answered
	Hint    string
	Stopped bool   // it is embedded in the daemon, and no daemon runs
	Leader  string // the controller that leads, "" for none

	Used, Quota int64 // bytes of its database; Quota 0: not known
	Revisions   int64 // that there have been
	Compacted   bool  // the first of them is gone
}

// Observation is what the checks look at.
type Observation struct {
	Policy   plan.Policy
	Members  []Member
	Etcd     Etcd
	Verdicts []plan.Verdict // the last ones published, none where none are known
	// Manager is what Patroni says, nil where it is not the source of the members;
	// Leader is then whom it has for leader.
	Manager *cluster.Manager
	Leader  cluster.Opt[string]
}

// Finding is something that deserves a look. SQL mends it, run by a superuser
// on the member On ("": on the primary, which is not known) in Database ("": in
// any), where SQL can.
type Finding struct {
	Code     string        `json:"code"`
	Severity plan.Severity `json:"severity"`
	Subject  string        `json:"subject"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint"`
	On       string        `json:"on,omitempty"`
	Database string        `json:"database,omitempty"`
	SQL      []string      `json:"sql,omitempty"`
	// Patch: an entry of Patroni's ignore_slots mends it, for the physical slot of
	// this name, or PatchLogical.
	Patch string `json:"patch,omitempty"`
}

// The codes that are not conditions or verdict reasons of package plan too.
const (
	CodeEtcdUnreachable      = "etcd_unreachable"
	CodeEtcdSpace            = "etcd_space"
	CodeEtcdCompaction       = "etcd_compaction"
	CodeControllerAbsent     = plan.CondControllerAbsent
	CodeWALUnbounded         = "wal_unbounded"
	CodePhysicalSlotInactive = "physical_slot_inactive"
	CodeVersionsDiffer       = "versions_differ"
)

// checks are all checks. Each gives its findings in any order.
var checks = []func(*ward) []Finding{
	checkEtcd, checkLedger, checkLeader,
	checkReachable, checkPrimary, checkSystem, checkExtension, checkVersions, checkRole,
	checkWalLevel, checkRoom, checkWALKeep, checkFeedback, checkPhysicalSlot,
	checkHold, checkHoldAge, checkUnmarked, checkPlugins, checkFence, checkPatroni,
}

// Checks is how many checks there are.
func Checks() int { return len(checks) }

// Diagnose runs all checks. The worst findings come first; the order does not
// depend on that of the members.
func Diagnose(o Observation) []Finding {
	w := newWard(o)
	found := []Finding{}
	for _, check := range checks {
		found = append(found, check(w)...)
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return found
}

func rank(s plan.Severity) int {
	switch s {
	case plan.Critical:
		return 0
	case plan.Warning:
		return 1
	}
	return 2
}

// Unreachable reports whether a finding says that something did not answer, so
// that there may be more to find.
func Unreachable(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.Code == string(plan.ReasonUnreachable) || f.Code == CodeEtcdUnreachable
	})
}

// Sound reports whether nothing is of warning or worse.
func Sound(found []Finding) bool {
	return !slices.ContainsFunc(found, func(f Finding) bool { return f.Severity != plan.Info })
}
