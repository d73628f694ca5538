package cases

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D09: the replay of DROP DATABASE has the database locked and has not come to its
// slots yet: it waits for a session there that does not end. The controller works
// on all slots meanwhile. It waits for nothing that replay has, and replay for
// nothing that it has: when the session ends, all goes on.
func TestD09LockOrder(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still(), Lasts: 8 * time.Minute})
	s.Exec(s.A, "CREATE DATABASE d")
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.OK(s.A.DB("d").Exec(s.Ctx, "SELECT pg_create_logical_replication_slot('there', 'test_decoding')"))
	s.Logical(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.RunEvery(100*time.Millisecond, "")
	s.Safe([]string{"there", "cdc"})

	s.FreezeDaemon() // or it drops the mirror there before replay comes
	guest, err := s.B.Connect(s.Ctx, "d", "")
	s.OK(err)
	pid := int(guest.PgConn().PID())
	s.OK(syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // it has ended long since
	s.Exec(s.A, "DROP DATABASE d")
	startup := strconv.Itoa(s.Background(s.B, "startup"))
	s.Wait("replay to have the database locked", func() (bool, string) {
		n := s.Text(s.B, "SELECT count(*) FROM pg_locks WHERE pid = "+startup+" AND classid = 'pg_database'::regclass AND mode = 'AccessExclusiveLock' AND granted")
		return n == "1", n + " such locks"
	})
	s.ThawDaemon()
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	want := s.Peek(s.A, "cdc")
	s.Cycles(10) // in which the mirror there is to be dropped
	if !s.Has(s.B, "there") {
		t.Error("the scene is not set: the mirror there is gone while its database is locked")
	}
	s.Safe([]string{"cdc"})
	s.Logical(s.A, "fresh")
	s.Verdict("fresh", s.B, plan.Pending, plan.ReasonReplayLag)

	s.OK(syscall.Kill(pid, syscall.SIGCONT))
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.Safe([]string{"cdc", "fresh"})
	if s.Has(s.B, "there") {
		t.Error("a slot stands on a database that is gone")
	}
	s.StopDaemon()
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
