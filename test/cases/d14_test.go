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

	s.OK(s.A.Restart(s.Ctx))
	s.Still(s.A)
	long := s.Session(s.A)
	long.Exec("BEGIN; INSERT INTO t VALUES (1)")
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	at := s.Slot(s.A, "cdc").Restart
	if record := s.Record(s.A, at); !strings.Contains(record, "CHECKPOINT_SHUTDOWN") {
		t.Fatalf("the scene is not set: the record at restart_lsn %s is %s", at, record)
	}
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
