package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// From 16 on somebody can consume from a mirror on its standby. Nobody is
// interrupted; what was confirmed there and not on the primary has moved the mirror
// beyond its slot: it is not SAFE, and goes once it is free, for it would be taken for
// where the consumer is. It is made again by itself.
func TestConsumerOnAStandby(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Major: max(harness.Major(t), 17), Settings: harness.Still()})
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	consumer := program(s, s.B, "pg_recvlogical", "--dbname=postgres", "--slot=cdc", "--start", "--file=/dev/null", "--status-interval=1", "--fsync-interval=1")
	s.Wait("the consumer to stream", func() (bool, string) { return activePID(s, s.B, "cdc") != "", "it does not" })
	pid := activePID(s, s.B, "cdc")
	if used := s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonInUse); !strings.Contains(used.Message, "process "+pid+" on b") {
		t.Errorf("it is said: %q", used.Message)
	}
	s.Wait("the consumer to confirm the row", func() (bool, string) {
		at := s.Slot(s.B, "cdc").Confirmed
		return at > s.Slot(s.A, "cdc").Confirmed, "it has confirmed " + at.String()
	})
	s.Cycles(3)
	if now := activePID(s, s.B, "cdc"); now != pid {
		t.Errorf("process %s was using the mirror, now it is %q", pid, now)
	}
	gate := s.Slotkeeper("gate", "--node", "b", "--dry-run")
	if !strings.Contains(gate.Stdout+gate.Stderr, "cdc in_use") {
		t.Errorf("the gate says %q", gate.Stdout+gate.Stderr)
	}
	used := s.Slot(s.B, "cdc")
	s.OK(consumer.Process.Kill())
	s.Safe([]string{"cdc"})
	if now := s.Slot(s.B, "cdc"); now.Incarnation == used.Incarnation || now.Confirmed != s.Slot(s.A, "cdc").Confirmed {
		t.Errorf("the mirror went from %v to %v", used, now)
	}
	s.Logged("mirror_ahead")
	want := s.Peek(s.A, "cdc")
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// Moved while no controller runs: the next one knows that the primary has run all the
// time, whose slots then went nowhere, and takes nobody's word for the mirror's.
func TestMirrorMovedWhileNoControllerRuns(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Major: max(harness.Major(t), 17), Settings: harness.Still()})
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	before := s.Incarnation(s.B, "cdc")
	s.Exec(s.B, "SELECT pg_replication_slot_advance('cdc', pg_last_wal_replay_lsn())")
	if mirror, slot := s.Slot(s.B, "cdc"), s.Slot(s.A, "cdc"); mirror.Confirmed <= slot.Confirmed {
		t.Fatalf("the scene is not set: the mirror is at %s, the slot at %s", mirror.Confirmed, slot.Confirmed)
	}
	s.Run()
	s.Safe([]string{"cdc"})
	s.Logged("mirror_ahead")
	if s.Incarnation(s.B, "cdc") == before {
		t.Error("the mirror is the one that was moved")
	}
	want := s.Peek(s.A, "cdc")
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// A crash takes a slot back to where it was saved, also one of a backend, which leaves
// the postmaster: a controller that begins then believes its mirrors.
func TestMirrorsAreBelievedAfterACrash(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.KillDaemon()
	s.Run()
	s.Safe([]string{"cdc"}) // its ledger has just been written, and will not have what moves now
	s.Exec(s.A, "INSERT INTO t VALUES (1); SELECT count(*) FROM pg_logical_slot_get_changes('cdc', NULL, NULL)")
	s.Mirrored("cdc", s.B)
	made := s.Incarnation(s.B, "cdc")
	s.KillDaemon()
	s.CrashBackend(s.A)
	if mirror, slot := s.Slot(s.B, "cdc"), s.Slot(s.A, "cdc"); mirror.Confirmed <= slot.Confirmed {
		t.Fatalf("the scene is not set: the mirror is at %s, the slot at %s", mirror.Confirmed, slot.Confirmed)
	}
	s.Run()
	s.Safe([]string{"cdc"})
	s.Condition(plan.CondPrimaryBehindMirror)
	if s.Incarnation(s.B, "cdc") != made {
		t.Error("the mirror was made anew")
	}
}
