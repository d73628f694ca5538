package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// From 18 on a checkpoint invalidates slots that nobody has had in hand for
// idle_replication_slot_timeout. Mirrors of slots that stand still are had in hand
// in time; without a controller they are lost, which shows that the scene is set.
func TestIdleMirrorsOutliveTheTimeout(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{
		Major: max(harness.Major(t), 18), Settings: harness.Still(),
		OnB: lab.StandbyOptions{Settings: map[string]string{"idle_replication_slot_timeout": "4s"}},
	})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.RunEvery(0, "")
	s.Safe([]string{"cdc"})
	if told := s.Condition(plan.CondIdleSlotTimeout); told.Subject != "b" {
		t.Errorf("told of %s", told.Subject)
	}
	of := s.Incarnation(s.B, "cdc")
	began := s.Text(s.B, "SELECT clock_timestamp()")
	s.Wait("three times the timeout to pass", func() (bool, string) {
		restartpoint(s)
		if s.Text(s.B, "SELECT invalidation_reason FROM pg_replication_slots WHERE slot_name = 'cdc'") != "" {
			t.Fatal("the mirror is invalidated under the controller's hands")
		}
		return s.Text(s.B, "SELECT clock_timestamp() > '"+began+"'::timestamptz + interval '12 s'") == "true", "not yet"
	})
	s.Safe([]string{"cdc"})
	if s.Incarnation(s.B, "cdc") != of {
		t.Error("the mirror was made anew meanwhile")
	}
	s.StopDaemon()
	s.Wait("the mirror to be lost without the controller", func() (bool, string) {
		restartpoint(s)
		why := s.Text(s.B, "SELECT invalidation_reason FROM pg_replication_slots WHERE slot_name = 'cdc'")
		return why == "idle_timeout", why
	})
}

// restartpoint has the standby write one.
func restartpoint(s *harness.Scene) {
	s.T.Helper()
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Exec(s.A, "CHECKPOINT")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.Exec(s.B, "CHECKPOINT")
}
