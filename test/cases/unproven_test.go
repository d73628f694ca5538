package cases

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A slot is dropped and made again, as a copy of one that is behind: its consumer goes
// back. A standby that could not be reached meanwhile has the mirror of the earlier
// slot, which is past what that consumer still needs, and is promoted.
func TestMirrorOfAnEarlierSlotDoesNotOutliveThePromotion(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	link := s.Link(s.B)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc", "behind")
	s.Run()
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.Safe([]string{"cdc", "behind"})
	link.Cut()
	s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonUnreachable)
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(s.A, "SELECT pg_copy_logical_replication_slot('behind', 'cdc')")
	if want := s.Peek(s.A, "cdc"); len(want) != 1 {
		t.Fatalf("the scene is not set: the copy sends %q", want)
	}
	s.Condition(plan.CondSlotRecreated)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	link.Heal()
	wentWithThePromotion(s)
	if got := s.Get(s.B, "behind"); len(got) != 1 {
		t.Errorf("the other slot sends %q", got)
	}
}

// wentWithThePromotion wants cdc not to be on b, and that to be said.
func wentWithThePromotion(s *harness.Scene) {
	s.T.Helper()
	if missing := s.Condition(plan.CondSlotMissing); missing.Subject != "cdc" {
		s.T.Errorf("of %s it is said %q", missing.Subject, missing.Message)
	}
	if s.Has(s.B, "cdc") {
		s.T.Error("it is there")
	}
}

// usedOnItsStandby is a scene in which somebody has confirmed on b what the consumer
// of cdc has not, and goes on. That can be done from 16 on.
func usedOnItsStandby(t *testing.T) (*harness.Scene, *exec.Cmd) {
	t.Helper()
	s := harness.Mirrored(t, harness.Options{Major: max(harness.Major(t), 17), Settings: harness.Still()})
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	stranger := program(s, s.B, "pg_recvlogical", "--dbname=postgres", "--slot=cdc", "--start", "--file=/dev/null", "--status-interval=1", "--fsync-interval=1")
	s.Wait("it to confirm the row", func() (bool, string) {
		at := s.Slot(s.B, "cdc").Confirmed
		return at > s.Slot(s.A, "cdc").Confirmed, "it has confirmed " + at.String()
	})
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonInUse)
	return s, stranger
}

// Somebody uses the mirror on its standby and confirms there what the slot's own
// consumer has not, and leaves just before the promotion.
func TestMirrorUsedUntilThePromotion(t *testing.T) {
	t.Parallel()
	s, consumer := usedOnItsStandby(t)
	s.FreezeAtRest()
	s.OK(consumer.Process.Kill())
	s.Wait("the consumer to go", func() (bool, string) { return activePID(s, s.B, "cdc") == "", "it has the mirror" })
	s.FailOver(s.B)
	s.ThawDaemon()
	wentWithThePromotion(s)
}

// The controller that saw it moved is another one by the time of the promotion.
func TestMovedMirrorDoesNotOutliveItsController(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Major: max(harness.Major(t), 17), Settings: harness.Still()})
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.OK(s.A.Kill(s.Ctx))
	s.Exec(s.B, "SELECT pg_replication_slot_advance('cdc', pg_last_wal_replay_lsn())")
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonMirrorAhead)
	s.StopDaemon()
	s.OK(s.B.Promote(s.Ctx))
	s.Run()
	wentWithThePromotion(s)
}

// A slot of another kind stands in the mirror's place on the node that is promoted:
// the one that was there before is missing, and that is said.
func TestAnotherKindOfSlotInTheMirrorsPlaceAtThePromotion(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.FreezeAtRest()
	s.Exec(s.B, "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(s.B, "SELECT pg_create_physical_replication_slot('cdc')")
	s.ThawDaemon()
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonNotOurs)
	s.FailOver(s.B)
	missing := s.Condition(plan.CondSlotMissing)
	if missing.Subject != "cdc" {
		t.Errorf("of %s it is said %q", missing.Subject, missing.Message)
	}
	s.Cycles(3)
	s.Condition(plan.CondSlotMissing)
	if !s.Has(s.B, "cdc") {
		t.Error("the slot of another kind was dropped")
	}
}

// As before, but whoever uses the mirror goes on with it through the promotion: it is
// not taken from under them. That the slot's own consumer misses something is said.
func TestMirrorUsedThroughThePromotion(t *testing.T) {
	t.Parallel()
	s, consumer := usedOnItsStandby(t)
	pid := activePID(s, s.B, "cdc")
	s.FailOver(s.B)
	told := s.Condition(plan.CondConsumerAhead)
	if told.Subject != "cdc" || told.Severity != plan.Critical || !strings.Contains(told.Message, "was used there before the promotion") {
		t.Errorf("it is %s of %s: %q", told.Severity, told.Subject, told.Message)
	}
	if now := activePID(s, s.B, "cdc"); now != pid {
		t.Errorf("process %s was using it, now it is %q", pid, now)
	}
	s.OK(consumer.Process.Kill())
	s.Wait("the consumer to go", func() (bool, string) { return activePID(s, s.B, "cdc") == "", "it has the slot" })
	s.Cycles(2)
	s.Condition(plan.CondConsumerAhead)
}
