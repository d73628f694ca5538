package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D05: the standby is cut off until the primary has given up its physical slot,
// and comes back through the archive. The slot protects nothing from then on,
// whether the standby streams through it again or not; the hold does.
func TestD05PhysicalSlotInvalidated(t *testing.T) {
	t.Parallel()
	each(t, map[string]harness.Options{"feedback on": {OnB: withFeedback()}, "feedback off": {}}, physicalSlotInvalidated)
}

// D05 on standbys that get their WAL late or from another standby. Of a chain the
// middle is cut off: its physical slot is the only one on the primary, through
// which all feedback comes.
func TestD05OnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, chains, physicalSlotInvalidated)
}

func physicalSlotInvalidated(t *testing.T, o harness.Options) {
	o.Settings = settings(harness.Still(), harness.SmallWAL(), map[string]string{
		"archive_mode":    "on",
		"archive_command": "mkdir -p ../archive && cp %p ../archive/%f.new && mv ../archive/%f.new ../archive/%f",
		"restore_command": "cp ../archive/%f %p",
	})
	s := harness.New(t, o)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.OK(s.A.Set(s.Ctx, map[string]string{"max_slot_wal_keep_size": "32MB"})) // the standby keeps its mirrors
	s.Still(s.A)                                                              // nothing is written after the last segment that the archive gets
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})

	s.CutOff(s.B)
	s.Wait("the physical slot to be lost", func() (bool, string) {
		s.Exec(s.A, "INSERT INTO t VALUES (0); SELECT pg_switch_wal()")
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "cdc")
		state := s.Text(s.A, "SELECT wal_status FROM pg_replication_slots WHERE slot_name = '"+s.B.SlotName()+"'")
		return state == "lost", "its wal_status is " + state
	})
	if told := s.Condition(plan.CondPhysicalSlotInvalidated); told.Subject != "b" {
		t.Errorf("it is said of %s", told.Subject)
	}
	s.FreezeDaemon()
	want := s.Outdate(s.A, "cdc")
	s.OK(s.B.Follow(s.Ctx, s.A))
	last := last(s)
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.FailOver(last)
	got := s.Get(last, "cdc")
	s.Same(got[max(0, len(got)-len(want)):], want) // the mirror has waited where it was
}
