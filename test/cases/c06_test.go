package cases

import (
	"slices"
	"testing"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C06: the right numbers with the wrong decoding state. Where a decoder begins
// at restart_lsn without the snapshot file, it becomes consistent beyond
// confirmed_flush_lsn, and all that commits in between is dropped.
func TestC06TransactionsOpenAtRestart(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (who text)")
	s.Still(s.A)
	s.Logical(s.A, "cdc")
	s.RunEvery(0, "")

	a, b := s.Session(s.A), s.Session(s.A)
	record := func() {
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "cdc")
	}
	a.Exec("BEGIN; INSERT INTO t VALUES ('a')")
	record()
	b.Exec("BEGIN; INSERT INTO t VALUES ('b')")
	record()
	a.Exec("COMMIT")
	s.Exec(s.A, "INSERT INTO t VALUES ('between')")
	record()
	record()
	if mirror := s.Mirrored("cdc", s.B); mirror.Way != "file" {
		t.Errorf("the scene is not set: the mirror is proven by %q, without its snapshot file", mirror.Way)
	}
	s.StopDaemon()

	b.Exec("COMMIT")
	s.Exec(s.A, "INSERT INTO t VALUES ('one')")
	s.Exec(s.A, "INSERT INTO t VALUES ('two')")
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	got := s.Get(s.B, "cdc")
	if len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q; the primary would have sent %q, three rows", got, want)
	}
}
