package cases

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D20: a restartpoint has made up its mind which snapshot files go, and then a
// mirror is made whose file is not among those that stay. It goes; the next cycle
// sees it and ships it again, before anything could be lost.
func TestD20RestartpointTakesTheFile(t *testing.T) {
	t.Parallel()
	restartpointTakesTheFile(t, harness.Options{})
}

// D20 on standbys that get their WAL late or from another standby. Feedback has no
// say in what a restartpoint removes: it is on in one scene of each test only.
func TestD20FileOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, map[string]harness.Options{"delayed": delayed, "cascading, with feedback": cascadingWithFeedback}, restartpointTakesTheFile)
}

func restartpointTakesTheFile(t *testing.T, o harness.Options) {
	o.Settings = harness.Still()
	s := harness.New(t, o)
	last := last(s)
	disk, two := openAtRestart(s, last)

	goOn := disk.StopCheckpoint("pg_logical/snapshots")
	s.Run()
	mirror := s.Mirrored("cdc", last)
	if mirror.Way != "file" {
		t.Fatalf("the scene is not set: the mirror is proven by %s", mirror.Way)
	}
	s.FreezeDaemon()
	goOn()
	if s.HasSnapshot(last, mirror.Restart) {
		t.Fatal("the scene is not set: the restartpoint has left the file")
	}
	if way := s.Text(last, "SELECT p.way FROM slotkeeper.consistent_point('"+mirror.Restart.String()+"', '"+mirror.Confirmed.String()+"') p"); way != "" {
		t.Errorf("without the file it is proven by %s", way)
	}
	s.ThawDaemon()
	s.Wait("the file to be shipped again", func() (bool, string) { return s.HasSnapshot(last, mirror.Restart), "it is not there" })
	s.Safe([]string{"cdc"})
	if now := s.Slot(last, "cdc"); now != mirror {
		t.Errorf("the mirror was %v and is %v", mirror, now)
	}
	s.StopDaemon()
	two.Exec("INSERT INTO t VALUES ('two again'); COMMIT")
	want := s.Peek(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.FailOver(last)
	if got := s.Get(last, "cdc"); len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q; the primary would have sent %q, both parts", got, want)
	}
}

// D20: the file goes while no primary is there to ship it from. The mirror must not be
// on the promoted node: it would send nothing of the transaction that was open, and say
// nothing.
func TestD20FileIsGoneAtThePromotion(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	disk, two := openAtRestart(s, s.B)
	goOn := disk.StopCheckpoint("pg_logical/snapshots")
	s.Run()
	mirror := s.Mirrored("cdc", s.B)
	s.Safe([]string{"cdc"})
	s.FreezeDaemon()
	goOn()
	if s.HasSnapshot(s.B, mirror.Restart) {
		t.Fatal("the scene is not set: the restartpoint has left the file")
	}
	two.Exec("INSERT INTO t VALUES ('two again'); COMMIT")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.ThawDaemon()
	s.Condition(plan.CondSlotMissing)
	if s.Has(s.B, "cdc") {
		t.Errorf("it sends %q", s.Get(s.B, "cdc"))
	}
}

// openAtRestart makes the slot cdc with two transactions that overlap at restart_lsn,
// and at each record after it. The second one is open still.
func openAtRestart(s *harness.Scene, last *lab.Node) (*harness.Disk, *harness.Session) {
	s.T.Helper()
	s.Exec(s.A, "CREATE TABLE t (who text)")
	s.Still(s.A)
	disk := s.FaultyDisk(last)
	s.Logical(s.A, "cdc")
	one, two := s.Session(s.A), s.Session(s.A)
	one.Exec("BEGIN; INSERT INTO t VALUES ('one')")
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	two.Exec("BEGIN; INSERT INTO t VALUES ('two')")
	s.Exec(s.A, "CHECKPOINT")
	one.Exec("COMMIT")
	s.Get(s.A, "cdc")
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	return disk, two
}

// D20: the same with the WAL that the mirror needs. It cannot be shipped: the
// mirror goes, and is made again when restart_lsn has moved.
func TestD20RestartpointTakesTheWAL(t *testing.T) {
	t.Parallel()
	restartpointTakesTheWAL(t, harness.Options{})
}

func TestD20WALOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, map[string]harness.Options{"delayed, with feedback": delayedWithFeedback, "cascading": cascading}, restartpointTakesTheWAL)
}

func restartpointTakesTheWAL(t *testing.T, o harness.Options) {
	o.Settings = harness.Still()
	s := harness.New(t, o)
	last := last(s)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	disk := s.FaultyDisk(last)
	s.Logical(s.A, "cdc")
	needed := s.Text(s.A, "SELECT pg_walfile_name(restart_lsn) FROM pg_replication_slots WHERE slot_name = 'cdc'")
	s.FillWAL(s.A, 3)                  // too little for a restartpoint of the standby's own accord
	s.OK(last.WaitCatchup(s.Ctx, s.A)) // and with it the last checkpoint
	goOn := disk.StopCheckpoint("pg_wal")
	s.Run()
	s.Safe([]string{"cdc"})
	s.FreezeDaemon()
	goOn()
	if left, err := filepath.Glob(filepath.Join(last.DataDir(), "pg_wal", needed)); err != nil || len(left) > 0 {
		t.Fatalf("the scene is not set: the restartpoint has left %q (%v)", left, err)
	}
	s.ThawDaemon()
	s.Verdict("cdc", last, plan.Pending, plan.ReasonWALMissing)
	s.Wait("the mirror to go", func() (bool, string) { return !s.Has(last, "cdc"), "it promises what is gone" })
	s.Wait("restart_lsn to leave what is gone", func() (bool, string) {
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "cdc")
		p := s.Now("cdc", last)
		return p.Verdict == plan.Safe, p.Message
	})
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	want := s.Peek(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	s.FailOver(last)
	s.Same(s.Get(last, "cdc"), want)
}
