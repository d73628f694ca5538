package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// unproven is a stage on which b was promoted and no controller has run since. Its slot
// cdc is past what the consumer of the one on a still needs, and the ledger knows it:
// that one was dropped and made again, as a copy of another, while b was not reached.
func unproven(t *testing.T) *stage {
	s := begin(t, 1)
	s.StopDaemon()
	link := s.Link(s.B)
	s.Run()
	s.config = s.Daemon.Config()
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "behind")
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	s.Safe([]string{"cdc", "behind"})
	link.Cut()
	s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonUnreachable)
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(s.A, "SELECT pg_copy_logical_replication_slot('behind', 'cdc')")
	s.Condition(plan.CondSlotRecreated)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	s.FailOver(s.B)
	link.Heal()
	return s
}

// What a controller would not leave to a consumer does not become its slot because
// slotkeeper goes.
func TestUninstallLeavesNoUnprovenSlot(t *testing.T) {
	t.Parallel()
	s := unproven(t)
	s.want(4, "uninstall -o tsv", "b\tmirror cdc\tyes\tit was not protected when this node was promoted", "b\toriginal behind\tyes\tmarker removed, slot kept")
	if got := s.slots(s.B); !slices.Equal(got, []string{"behind"}) {
		t.Errorf("b has %v", got)
	}
}

// Of two nodes that take writes nothing can be judged: it stays as it is.
func TestUninstallJudgesNothingOfTwoPrimaries(t *testing.T) {
	t.Parallel()
	s := begin(t, 1)
	s.StopDaemon()
	s.OK(s.B.Promote(s.Ctx))
	r := s.want(3, "uninstall -o tsv", "is not known to be the only primary", "kept, because something is left above")
	if s.Text(s.B, "SELECT (marker).kind FROM slotkeeper.slots() WHERE name = 'cdc'") != "mirror" {
		t.Errorf("b's slot is a mirror no more: %s", r.Stdout)
	}
}

// verify does not know the ledger, and says so. sync may be the only cycle that there
// is: it says at once what it has dropped, and a controller that begins later says it too.
func TestSyncSaysWhatDidNotComeThrough(t *testing.T) {
	t.Parallel()
	s := unproven(t)
	s.want(0, "verify", "marked as mirrors still: behind, cdc.", `"slotkeeper sync" drops those that were not`)
	s.want(4, "sync", "slot_missing (cdc)", "its mirror there was not protected and is dropped: it was last seen at")
	if got := s.slots(s.B); slices.Contains(got, "cdc") {
		t.Errorf("b has %v", got)
	}
	if r := s.want(0, "verify", "behind"); strings.Contains(r.Stdout, "marked as mirrors") {
		t.Errorf("verify says %s", r.Stdout)
	}
	s.Run()
	s.Condition(plan.CondSlotMissing)
}
