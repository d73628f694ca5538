package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C14: the primary gives up a slot whose consumer stays away too long. That one
// is LOST, has no position and no lag (not 0), and the other goes on.
func TestC14LostOnThePrimary(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.SmallWAL()})
	s.OK(s.A.Set(s.Ctx, map[string]string{"max_slot_wal_keep_size": "32MB"}))
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "away", "alive")
	s.Run()
	s.Safe([]string{"away", "alive"})
	s.FillWAL(s.A, 13, "alive")
	s.Lost(s.A, "away")

	lost := s.Verdict("away", s.B, plan.Lost, plan.ReasonWALRemoved)
	if lost.LagBytes.OK {
		t.Errorf("a lost slot has a lag of %d bytes", lost.LagBytes.V)
	}
	s.Mirrored("alive", s.B)
	if lines := s.Metrics(`slotkeeper_mirror_lag_bytes{`, `slot="away"`); len(lines) > 0 {
		t.Errorf("a lost slot has a lag: %q", lines)
	}
	if lines := s.Metrics(`slotkeeper_mirror_lag_bytes{`, `slot="alive"`); len(lines) != 1 {
		t.Errorf("the lag of the other is %q", lines)
	}
	if lines := s.Metrics(`slotkeeper_mirror_reason{`, `slot="away"`, `reason="wal_removed"`); len(lines) != 1 {
		t.Errorf("the reason is not among the metrics: %q", lines)
	}
	doc, _ := s.Status()
	for _, slot := range doc.Slots {
		if slot.Name == "away" && slot.Restart.OK {
			t.Errorf("it is shown with restart_lsn %s", slot.Restart.V)
		}
	}
	if r := s.Slotkeeper("status"); r.Code != 3 {
		t.Errorf("status ends with %d", r.Code)
	}
	s.Cycles(3)
	s.NoComplaints(plan.CondFeedbackOff, plan.CondNoSafeCandidate, plan.CondLag)

	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	if rows := s.Get(s.B, "alive"); len(rows) != 1 {
		t.Errorf("%q came from the slot that goes on, want one row", rows)
	}
	// b's own WAL was never given up: what it has, it has whole.
	if rows := s.Get(s.B, "away"); len(rows) != 14 {
		t.Errorf("%d of 14 rows came from the mirror of the lost slot", len(rows))
	}
}

// C14: only a standby gives its mirror up. It is gone there, and is made again
// as soon as the slot needs none of the WAL that is gone; the slot on the primary
// and the other standby are as they were.
func TestC14LostOnAStandby(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Settings: harness.SmallWAL()})
	s.OK(s.B.Set(s.Ctx, map[string]string{"max_slot_wal_keep_size": "32MB"}))
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "away", "alive")
	s.Run()
	s.Safe([]string{"away", "alive"})
	for range 13 {
		s.FillWAL(s.A, 1, "alive")
		s.Mirrored("alive", s.B) // its mirror would fall behind as far as the other's
	}
	s.Wait("the mirror on b to be LOST", func() (bool, string) {
		s.Exec(s.B, "CHECKPOINT")
		return s.Judged("away", s.B, plan.Lost, plan.ReasonWALRemoved), "it has not been"
	})
	s.Verdict("away", s.B, plan.Pending, plan.ReasonWALMissing)
	s.Safe([]string{"away"}, s.C)
	for _, on := range []*lab.Node{s.B, s.C} {
		s.Mirrored("alive", on)
	}
	s.Cycles(3)
	s.NoComplaints(plan.CondFeedbackOff, plan.CondLag)

	if rows := s.Get(s.A, "away"); len(rows) != 13 {
		t.Errorf("%d of 13 rows came from the slot on the primary", len(rows))
	}
	s.Wait("restart_lsn to leave what is gone", func() (bool, string) {
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "away")
		p := s.Now("away", s.B)
		return p.Verdict == plan.Safe, p.Message
	})
	s.Mirrored("away", s.B)
}
