package cases

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D20: a restartpoint has made up its mind which snapshot files go, and then a
// mirror is made whose file is not among those that stay. It goes; the next cycle
// sees it and ships it again, before anything could be lost.
func TestD20RestartpointTakesTheFile(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (who text)")
	s.Still(s.A)
	disk := s.FaultyDisk(s.B)
	s.Logical(s.A, "cdc")
	// Two transactions that overlap at restart_lsn, and at each record after it.
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
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))

	goOn := disk.StopCheckpoint("pg_logical/snapshots")
	s.Run()
	mirror := s.Mirrored("cdc", s.B)
	if mirror.Way != "file" {
		t.Fatalf("the scene is not set: the mirror is proven by %s", mirror.Way)
	}
	s.FreezeDaemon()
	goOn()
	if s.HasSnapshot(s.B, mirror.Restart) {
		t.Fatal("the scene is not set: the restartpoint has left the file")
	}
	if way := s.Text(s.B, "SELECT p.way FROM slotkeeper.consistent_point('"+mirror.Restart.String()+"', '"+mirror.Confirmed.String()+"') p"); way != "" {
		t.Errorf("without the file it is proven by %s", way)
	}
	s.ThawDaemon()
	s.Wait("the file to be shipped again", func() (bool, string) { return s.HasSnapshot(s.B, mirror.Restart), "it is not there" })
	s.Safe([]string{"cdc"})
	if now := s.Slot(s.B, "cdc"); now != mirror {
		t.Errorf("the mirror was %v and is %v", mirror, now)
	}
	s.StopDaemon()
	two.Exec("INSERT INTO t VALUES ('two again'); COMMIT")
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	if got := s.Get(s.B, "cdc"); len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q; the primary would have sent %q, both parts", got, want)
	}
}

// D20: the same with the WAL that the mirror needs. It cannot be shipped: the
// mirror goes, and is made again when restart_lsn has moved.
func TestD20RestartpointTakesTheWAL(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	disk := s.FaultyDisk(s.B)
	s.Logical(s.A, "cdc")
	needed := s.Text(s.A, "SELECT pg_walfile_name(restart_lsn) FROM pg_replication_slots WHERE slot_name = 'cdc'")
	s.FillWAL(s.A, 3) // too little for a restartpoint of the standby's own accord
	goOn := disk.StopCheckpoint("pg_wal")
	s.Run()
	s.Safe([]string{"cdc"})
	s.FreezeDaemon()
	goOn()
	if left, err := filepath.Glob(filepath.Join(s.B.DataDir(), "pg_wal", needed)); err != nil || len(left) > 0 {
		t.Fatalf("the scene is not set: the restartpoint has left %q (%v)", left, err)
	}
	s.ThawDaemon()
	s.Verdict("cdc", s.B, plan.Pending, plan.ReasonWALMissing)
	s.Wait("the mirror to go", func() (bool, string) { return !s.Has(s.B, "cdc"), "it promises what is gone" })
	s.Wait("restart_lsn to leave what is gone", func() (bool, string) {
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "cdc")
		p := s.Now("cdc", s.B)
		return p.Verdict == plan.Safe, p.Message
	})
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
