package cases

import (
	"slices"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

const addColumn = "ALTER TABLE u ADD COLUMN b int"

// D03: once a decoder without a snapshot file is past BUILDING, nothing running
// makes it consistent with catalogs of long ago: it sends rows without their
// newest columns, and no error.
func TestD03ColumnAddedByAnother(t *testing.T) {
	t.Parallel()
	nothingRunningAfterFull(t, "file", func(s *harness.Scene, old *harness.Session) {
		old.Exec("BEGIN; INSERT INTO t VALUES ('old')")
		s.Exec(s.A, addColumn)
	})
}

// D03, where the transaction that spans the second record adds the column itself.
func TestD03ColumnAddedBySpanning(t *testing.T) {
	t.Parallel()
	nothingRunningAfterFull(t, "file", addedBySpanning)
}

// D03 once more, with the file at the second record instead: what was open there
// has ended before confirmed_flush_lsn.
func TestD03LaterFile(t *testing.T) {
	t.Parallel()
	nothingRunningAfterFull(t, "later_file", addedBySpanning)
}

func addedBySpanning(_ *harness.Scene, old *harness.Session) {
	old.Exec("BEGIN; INSERT INTO t VALUES ('old'); " + addColumn)
}

// nothingRunningAfterFull sets the scene: w is open at restart_lsn, what alter
// begins is open at the second record, another transaction begins after that and
// ends with it before the third, and a slow consumer confirms all at once, so
// that restart_lsn stands. Without any file nothing proves it; with the one at
// restart_lsn, or the one at the second record, all columns come.
func nothingRunningAfterFull(t *testing.T, way string, alter func(s *harness.Scene, old *harness.Session)) {
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (who text); CREATE TABLE u (a int)")
	s.Still(s.A)
	s.Logical(s.A, "cdc")
	w, old, young := s.Session(s.A), s.Session(s.A), s.Session(s.A)
	w.BeginIdle()
	before := s.Current(s.A)
	s.Exec(s.A, "CHECKPOINT")
	after := s.Current(s.A)
	alter(s, old)
	w.Exec("COMMIT")
	s.Exec(s.A, "CHECKPOINT")
	young.Exec("BEGIN; INSERT INTO t VALUES ('young')")
	old.Exec("COMMIT")
	young.Exec("COMMIT")
	s.Exec(s.A, "CHECKPOINT")
	third := s.Current(s.A)
	s.Exec(s.A, "INSERT INTO t VALUES ('last')")
	s.Get(s.A, "cdc")
	at := s.Slot(s.A, "cdc")
	if at.Restart < before || at.Restart > after || at.Confirmed < third {
		t.Fatalf("the scene is not set: the slot is at %s, %s; the records are at [%s, %s] and before %s", at.Restart, at.Confirmed, before, after, third)
	}

	var second cluster.LSN
	var later []byte
	for l, _ := s.NewestSnapshot(s.A); l > at.Restart; l, _ = s.NewestSnapshot(s.A) {
		second, later = l, s.TakeSnapshot(s.A, l)
	}
	file := s.TakeSnapshot(s.A, at.Restart)
	s.RunEvery(100*time.Millisecond, "")
	s.Unproven("cdc", s.B)

	if way == "file" {
		s.PutSnapshot(s.A, at.Restart, file)
	} else {
		s.PutSnapshot(s.A, second, later)
	}
	if mirror := s.Mirrored("cdc", s.B); mirror.Way != way {
		t.Errorf("proven by %q, want %q", mirror.Way, way)
	}
	s.StopDaemon()
	s.Exec(s.A, "INSERT INTO u VALUES (1, 2)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	if got := s.Get(s.B, "cdc"); !slices.Equal(got, []string{"table public.u: INSERT: a[integer]:1 b[integer]:2"}) {
		t.Errorf("the promoted node sends %q, want both columns", got)
	}
}
