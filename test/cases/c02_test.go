package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C02: the mirror is there and the catalog rows that it needs are gone, with
// feedback off. The hold has kept them while nobody looked.
func TestC02HoldKeepsCatalogRows(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.Condition(plan.CondFeedbackOff)
	s.FreezeDaemon()

	s.Churn(s.A)
	want := s.Outdate(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// rowsGone waits until the controller has said that a mirror goes because rows
// that it needs are gone. From 16 on the server itself finds out when it replays that.
func rowsGone(s *harness.Scene) {
	s.T.Helper()
	if s.Lab.Major() >= 16 {
		s.Logged(string(plan.ReasonRowsRemoved))
	} else {
		s.Logged(string(plan.ReasonProtectionGap))
	}
}

// The hold is dropped while nobody looks: the mirror must go before anybody can
// use it, and is made again from a new read.
func TestC02HoldGoneMirrorGoes(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	before := s.Slot(s.B, "cdc")
	s.FreezeDaemon()

	s.Exec(s.A, "SELECT pg_drop_replication_slot('slotkeeper_hold')")
	s.Churn(s.A)
	s.Outdate(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.ThawDaemon()
	rowsGone(s)
	s.Logged("hold_missing")
	s.Safe([]string{"cdc"})
	if after := s.Slot(s.B, "cdc"); after.Incarnation == before.Incarnation {
		t.Errorf("the mirror is still the one whose rows are gone, at %s", after.Confirmed)
	}

	s.Exec(s.A, "INSERT INTO t SELECT 'c' || i FROM generate_series(1, 10) i")
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
