package cases

import (
	"fmt"
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

// C06: three sessions that always overlap, a consumer that follows, and many
// commits while an older transaction is open. The promoted node sends what the
// primary would have sent, in order and count.
func TestC06OverlappingTransactions(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Exec(s.A, "CREATE TABLE t (who text)")
	s.Logical(s.A, "cdc")
	s.RunEvery(0, "")
	sessions := []*harness.Session{s.Session(s.A), s.Session(s.A), s.Session(s.A)}
	for turn := range 12 {
		own := sessions[turn%3]
		if turn >= 3 {
			own.Exec("COMMIT")
		}
		own.Exec(fmt.Sprintf("BEGIN; INSERT INTO t VALUES ('begin %d')", turn))
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "cdc")
		for i, other := range sessions[:min(turn+1, 3)] {
			other.Exec(fmt.Sprintf("SAVEPOINT s; INSERT INTO t VALUES ('part %d of %d'); RELEASE s", turn, i))
		}
	}
	mirror := s.Mirrored("cdc", s.B)
	s.StopDaemon()

	s.Exec(s.A, "CHECKPOINT")
	for range 50 {
		s.Exec(s.A, "INSERT INTO t VALUES ('short')")
	}
	for _, session := range sessions {
		session.Exec("COMMIT")
	}
	s.Exec(s.A, "CHECKPOINT")
	want := s.Peek(s.A, "cdc")
	if at := s.Slot(s.A, "cdc"); at.Confirmed != mirror.Confirmed || len(want) < 56 {
		t.Fatalf("the scene is not set: the slot is at %s, the mirror at %s, and %d rows are to come", at.Confirmed, mirror.Confirmed, len(want))
	}
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
