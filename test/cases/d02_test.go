package cases

import (
	"slices"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D02: a snapshot file at an LSN beyond restart_lsn proves nothing. The decoder
// that finds it skips what running transactions wrote before it, and then sends
// their second half.
func TestD02SnapshotBeyondRestart(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (part int)")
	s.Still(s.A)
	s.Logical(s.A, "cdc")
	w, long := s.Session(s.A), s.Session(s.A)
	w.BeginIdle()
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	restart := s.Slot(s.A, "cdc").Restart
	long.Exec("BEGIN; INSERT INTO t VALUES (1)")
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	beyond, later := s.NewestSnapshot(s.A)
	w.Exec("COMMIT")
	s.Get(s.A, "cdc")
	if at := s.Slot(s.A, "cdc"); at.Restart != restart || beyond <= restart || at.Confirmed <= beyond {
		t.Fatalf("the scene is not set: the slot went from %s to %s, %s, with a file at %s", restart, at.Restart, at.Confirmed, beyond)
	}

	file := s.TakeSnapshot(s.A, restart)
	s.PutSnapshot(s.B, beyond, later)
	s.RunEvery(100*time.Millisecond, "")
	s.Unproven("cdc", s.B)

	s.PutSnapshot(s.A, restart, file)
	s.Mirrored("cdc", s.B)
	s.StopDaemon()
	long.Exec("INSERT INTO t VALUES (2); COMMIT")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	want := []string{"table public.t: INSERT: part[integer]:1", "table public.t: INSERT: part[integer]:2"}
	if got := s.Get(s.B, "cdc"); !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q, want both parts", got)
	}
}
