package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// C01: a slot must never be made anew at "now" after a promotion. With a SAFE
// mirror all rows that the consumer had not read arrive.
func TestC01MirroredRowsArrive(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	s.FailOver(s.B)
	if rows := s.Get(s.B, "cdc"); len(rows) != 1000 {
		t.Errorf("%d of 1000 rows arrived", len(rows))
	}
}

// The controller is stopped before the standby had a mirror. After the promotion
// nobody makes the slot at the current position, where 1000 rows would be
// skipped without a word: its consumer fails, and the controller says why.
func TestC01NeverMadeAtNow(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "other")
	s.Run()
	s.Safe([]string{"other"})
	s.Exec(s.B, "SELECT pg_wal_replay_pause()")
	s.Exec(s.A, "INSERT INTO t VALUES (0)")
	s.Logical(s.A, "cdc")
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	s.Verdict("cdc", s.B, plan.Pending, plan.ReasonReplayLag)
	last := s.Slot(s.A, "cdc").Confirmed.String()
	s.StopDaemon()
	s.OK(s.B.WaitReceived(s.Ctx, s.A))
	s.FailOver(s.B)

	s.Run()
	s.Condition(plan.CondSlotMissing)
	s.Cycles(3)
	if missing := s.Condition(plan.CondSlotMissing); missing.Subject != "cdc" || missing.Severity != plan.Critical || !strings.Contains(missing.Message, last) {
		t.Errorf("the condition is %s of %s, last at %s: %q", missing.Severity, missing.Subject, last, missing.Message)
	}
	if s.Has(s.B, "cdc") {
		t.Error("the slot was made on the new primary")
	}
	if rows := s.Text(s.B, "SELECT count(*) FROM t"); rows != "1001" {
		t.Errorf("the scene is not set: %s rows of 1001 are on the new primary", rows)
	}
	err := s.B.Exec(s.Ctx, "SELECT pg_logical_slot_get_changes('cdc', NULL, NULL)")
	if err == nil || !strings.Contains(err.Error(), `replication slot "cdc" does not exist`) {
		t.Errorf("the consumer is told %v", err)
	}
}
