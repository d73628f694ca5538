package cases

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D14: after a clean restart the record at restart_lsn can be the shutdown
// checkpoint, which names no running transactions. Decoders leave a snapshot
// file there too, and it is a proof.
func TestD14RestartIsShutdownCheckpoint(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (part int)")
	s.Logical(s.A, "cdc")
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	s.RunEvery(0, "")
	s.Mirrored("cdc", s.B)

	var long *harness.Session
	s.Wait("restart_lsn to be at the shutdown checkpoint", func() (bool, string) {
		s.OK(s.A.Restart(s.Ctx))
		s.Still(s.A) // on a slow machine the server may have written a later record before
		long = s.Session(s.A)
		long.Exec("BEGIN; INSERT INTO t VALUES (1)")
		s.Exec(s.A, "CHECKPOINT")
		for range 2 { // the first may only reach a record of before the shutdown
			s.Get(s.A, "cdc")
		}
		record := s.Record(s.A, s.Slot(s.A, "cdc").Restart)
		s.Moving(s.A)
		return strings.Contains(record, "CHECKPOINT_SHUTDOWN"), "it is at " + record
	})
	if mirror := s.Mirrored("cdc", s.B); mirror.Way != "file" {
		t.Errorf("the mirror at %s is proven by %q, want file", mirror.Restart, mirror.Way)
	}

	s.StopDaemon()
	long.Exec("INSERT INTO t VALUES (2); COMMIT")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	want := []string{"table public.t: INSERT: part[integer]:1", "table public.t: INSERT: part[integer]:2"}
	if got := s.Get(s.B, "cdc"); !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q, want both parts", got)
	}
}
