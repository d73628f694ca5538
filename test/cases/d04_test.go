package cases

import (
	"slices"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D04: a decoder that becomes consistent at or beyond confirmed_flush_lsn skips
// what lies before, also where no transaction commits there: a message that is
// no transaction's.
func TestD04MessageBeforeConsistent(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Still(s.A)
	s.Logical(s.A, "cdc")
	w := s.Session(s.A)
	w.BeginIdle()
	s.Exec(s.A, "CHECKPOINT")
	w.Exec("COMMIT")
	s.Get(s.A, "cdc")
	s.Exec(s.A, "SELECT pg_logical_emit_message(false, 'd04', 'hello')")
	s.Exec(s.A, "CHECKPOINT") // nothing runs here: consistent, too late
	at := s.Slot(s.A, "cdc")

	file := s.TakeSnapshot(s.A, at.Restart)
	s.RunEvery(100*time.Millisecond, "")
	s.Unproven("cdc", s.B)

	s.PutSnapshot(s.A, at.Restart, file)
	s.Mirrored("cdc", s.B)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	want := []string{"message: transactional: 0 prefix: d04, sz: 5 content:hello"}
	if got := s.Get(s.B, "cdc"); !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q, want %q", got, want)
	}
}

// D04, with a PREPARE of a two-phase slot: the decoder becomes consistent by its
// phases after it, and would send the COMMIT PREPARED of nothing.
func TestD04PrepareBeforeConsistent(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Major: harness.TwoPhase(t), Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (who text)")
	s.Still(s.A)
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('cdc', 'test_decoding', false, true)")
	decoded := "SELECT data FROM pg_logical_slot_get_changes('cdc', NULL, NULL, 'include-xids', '0')"
	w, other := s.Session(s.A), s.Session(s.A)
	w.BeginIdle()
	s.Exec(s.A, "CHECKPOINT")
	s.Rows(s.A, decoded)
	restart := s.Slot(s.A, "cdc").Restart
	other.Exec("BEGIN; INSERT INTO t VALUES ('other')")
	w.Exec("COMMIT")
	s.Exec(s.A, "CHECKPOINT")
	other.Exec("COMMIT")
	s.Rows(s.A, decoded)
	at := s.Slot(s.A, "cdc")
	if at.Restart != restart {
		t.Fatalf("the scene is not set: restart_lsn went from %s to %s", restart, at.Restart)
	}
	w.Exec("BEGIN; INSERT INTO t VALUES ('prepared'); PREPARE TRANSACTION 'd04'")
	s.Exec(s.A, "CHECKPOINT") // consistent here, by its phases, too late

	file := s.TakeSnapshot(s.A, restart)
	s.RunEvery(100*time.Millisecond, "")
	s.Unproven("cdc", s.B)

	s.PutSnapshot(s.A, restart, file)
	s.Mirrored("cdc", s.B)
	s.Exec(s.A, "COMMIT PREPARED 'd04'")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	want := []string{"BEGIN", "table public.t: INSERT: who[text]:'prepared'", "PREPARE TRANSACTION 'd04'", "COMMIT PREPARED 'd04'"}
	if got := s.Rows(s.B, decoded); !slices.Equal(got, want) {
		t.Errorf("the promoted node sends %q, want %q", got, want)
	}
}
