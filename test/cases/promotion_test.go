package cases

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Each node is promoted in turn while another lags: what lags keeps its mirror,
// follows, and is a candidate again.
func TestEachNodePromotedWhileAnotherLags(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	next := []*lab.Node{s.B, s.C, s.A}
	for i, to := range next {
		var lagging *lab.Node
		for _, n := range s.Nodes()[1:] {
			if n != to {
				lagging = n
			}
		}
		s.Exec(lagging, "SELECT pg_wal_replay_pause()")
		behind := s.Slot(lagging, "cdc")
		s.Exec(s.A, fmt.Sprintf("ALTER TABLE t ADD COLUMN c%d int DEFAULT %d", i, i))
		s.Exec(s.A, "INSERT INTO t VALUES (1)")
		s.Pass(s.A, "cdc")
		s.Mirrored("cdc", to)
		s.Exec(s.A, "INSERT INTO t VALUES (2)")
		want := s.Peek(s.A, "cdc")
		s.Level()
		s.OK(to.WaitCatchup(s.Ctx, s.A))
		s.FailOver(to)
		s.Leads(to)
		s.Same(s.Peek(s.A, "cdc"), want)
		s.OK(lagging.Follow(s.Ctx, s.A)) // it will when it has replayed the old timeline
		s.VacuumCatalogs(s.A)
		s.Verdict("cdc", lagging, plan.Unsafe, plan.ReasonTimelineMismatch) // it replays the old one yet
		// Its restart_lsn may have moved, for the slot's may while all else stands.
		if now := s.Slot(lagging, "cdc"); now.Incarnation != behind.Incarnation || now.Confirmed < behind.Confirmed {
			t.Errorf("turn %d: the mirror on %s went from %+v to %+v", i, lagging.Name(), behind, now)
		}
		s.Exec(lagging, "SELECT pg_wal_replay_resume()")
		s.Safe([]string{"cdc"}, lagging)
		for _, n := range s.Nodes()[1:] {
			if !n.Running() {
				s.Behind(n)
			}
		}
		s.Safe([]string{"cdc"})
		s.Same(s.Get(s.A, "cdc"), want)
		s.Mirrored("cdc", lagging)
	}
}

// After a promotion somebody drops the slot and makes one of its name, as some
// consumers do. That is another slot: it is told of, and the mirrors are its own.
func TestSlotMadeAnewAfterAPromotion(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	before := s.Slot(s.C, "cdc")
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Level()
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FreezeDaemon()
	s.FailOver(s.B)
	s.Leads(s.B)
	s.Behind(s.C)
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Logical(s.A, "cdc")
	fresh := s.Slot(s.A, "cdc")
	s.ThawDaemon()
	made := s.Condition(plan.CondSlotRecreated)
	for _, at := range []string{before.Confirmed.String(), fresh.Confirmed.String()} {
		if made.Subject != "cdc" || !strings.Contains(made.Message, at) {
			t.Errorf("of %s it is said: %q, without %s", made.Subject, made.Message, at)
		}
	}
	s.Safe([]string{"cdc"}, s.C)
	if now := s.Slot(s.C, "cdc"); now.Position != fresh.Position {
		t.Errorf("the mirror is at %+v, the new slot at %+v", now, fresh)
	}
	s.Exec(s.A, "INSERT INTO t VALUES (2)")
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.C)
	s.Same(s.Get(s.C, "cdc"), []string{"table public.t: INSERT: id[integer]:2"})
}

// A primary comes back from an old copy, on a timeline that has been left: it is
// not followed, nothing is written, and nothing of what is proven is given away.
func TestPrimaryResetToAnOldTimeline(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	s.Level()
	s.FailOver(s.B)
	old := s.A
	s.Leads(s.B)
	s.Behind(s.C)
	s.Safe([]string{"cdc"}, s.C)
	mirror := s.Slot(s.C, "cdc")
	s.OK(s.A.StopFast(s.Ctx))
	s.OK(os.RemoveAll(s.A.DataDir()))
	s.OK(s.A.CopyOf(s.Ctx, old))
	s.OK(s.A.Start(s.Ctx))
	reset := s.Condition(plan.CondTimelineReset)
	if reset.Severity != plan.Critical || !strings.Contains(reset.Message, "timeline 1") || !strings.Contains(reset.Message, "timeline 2") {
		t.Errorf("it is %s: %q", reset.Severity, reset.Message)
	}
	marker := s.Text(s.A, "SELECT max((marker).generation) FROM slotkeeper.slots()")
	s.Logical(s.A, "fresh")
	s.Cycles(3)
	if now := s.Slot(s.C, "cdc"); now != mirror {
		t.Errorf("the mirror on c went from %+v to %+v", mirror, now)
	}
	if s.Has(s.C, "fresh") || s.Text(s.A, "SELECT max((marker).generation) FROM slotkeeper.slots()") != marker {
		t.Error("something was written by the word of the primary that was reset")
	}
}

// A primary's disk is put back to what it was some moments ago, on the timeline
// that it is still on: nothing is written by its word, also when it has gone on
// beyond where it was, and what the standby has of before is not called SAFE.
func TestPrimaryPutBackToAnOlderState(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Rewindable()})
	data, old := s.A.DataDir(), s.A.DataDir()+".old"
	s.OK(s.A.StopFast(s.Ctx))
	out, err := exec.CommandContext(s.Ctx, "cp", "-a", data, old).CombinedOutput()
	if err != nil {
		t.Fatalf("copying the primary: %v: %s", err, out)
	}
	s.OK(s.A.Start(s.Ctx))
	s.OK(s.B.WaitStreaming(s.Ctx))
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	s.Get(s.A, "cdc")
	mirror := s.Mirrored("cdc", s.B)
	s.Safe([]string{"cdc"})

	s.OK(s.A.StopFast(s.Ctx))
	s.OK(os.RemoveAll(data))
	s.OK(os.Rename(old, data))
	s.OK(s.A.Start(s.Ctx))
	if reset := s.Condition(plan.CondTimelineReset); reset.Severity != plan.Critical || !strings.Contains(reset.Message, "timeline 1") {
		t.Errorf("it is %s: %q", reset.Severity, reset.Message)
	}
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonTimelineMismatch)
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10000)")
	s.Get(s.A, "cdc")
	s.Logical(s.A, "fresh")
	s.Cycles(3)
	s.Condition(plan.CondTimelineReset)
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonTimelineMismatch)
	if now := s.Slot(s.B, "cdc"); now.Position != mirror.Position || s.Has(s.B, "fresh") {
		t.Errorf("the mirror went from %+v to %+v, or one of a slot of after that was made", mirror, now)
	}

	// The standby has taken in what the primary wrote since among what it had: it is
	// no candidate any more, also without that primary.
	s.OK(s.A.StopFast(s.Ctx))
	s.Condition(plan.CondNoLeader)
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonTimelineMismatch)
}

// An unproven slot of a new primary is in use when the controller comes: it
// cannot be dropped, and nobody is interrupted. It is said, loudly, and the slot
// goes as soon as it is free.
func TestUnprovenSlotInUseAfterAPromotion(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	s.Shut(s.B)
	s.FreezeDaemon()
	s.Exec(s.A, dropHold)
	s.Exec(s.A, "INSERT INTO t VALUES (1)") // a row that can be decoded all the same
	s.Pass(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.ThawDaemon()
	s.Logged("hold_missing")
	s.Safe([]string{"cdc"}, s.C)
	s.FreezeDaemon()
	s.FailOver(s.B)
	s.Leads(s.B)
	consumer := s.Consume(s.A, "cdc")
	s.Open(s.A)
	s.ThawDaemon()
	used := s.Condition(plan.CondProtectionGap)
	if used.Severity != plan.Critical || used.Subject != "cdc" || !strings.Contains(used.Message, fmt.Sprintf("process %d", consumer.PID())) {
		t.Errorf("it is %s of %s: %q", used.Severity, used.Subject, used.Message)
	}
	s.Cycles(3)
	if !s.Has(s.A, "cdc") || !consumer.Alive() {
		t.Error("a slot in use was taken from its consumer")
	}
	consumer.Stop()
	s.Wait("the unproven slot to go", func() (bool, string) { return !s.Has(s.A, "cdc"), "it is still there" })
	s.Condition(plan.CondSlotMissing)
	s.NoCondition(plan.CondProtectionGap)
}
