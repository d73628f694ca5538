package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

const dropHold = "SELECT pg_drop_replication_slot('slotkeeper_hold')"

// D17: somebody drops the hold. The slot itself still pins what its mirror
// needs, so nothing is lost: it is held again, and the mirror stays.
func TestD17SlotStillPins(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	before := s.Slot(s.B, "cdc")
	generation := s.Generation(s.B, "cdc")
	s.FreezeDaemon()
	s.Exec(s.A, dropHold)
	s.Exec(s.B, dropHold)
	s.Reshape(s.A)
	s.VacuumCatalogs(s.A)
	s.ThawDaemon()
	s.Logged("hold_missing")
	s.Safe([]string{"cdc"})
	s.FreezeDaemon()
	if after := s.Slot(s.B, "cdc"); after.Incarnation != before.Incarnation {
		t.Error("the mirror was made again although nothing was lost")
	}
	for _, name := range []string{"cdc", "slotkeeper_hold"} {
		if now := s.Generation(s.B, name); now <= generation {
			t.Errorf("%s on b is of generation %d, as before the hold was dropped", name, now)
		}
	}

	// The new hold is worth as much as the old one.
	want := s.Peek(s.A, "cdc")
	s.Pass(s.A, "cdc")
	s.VacuumCatalogs(s.A)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// The slot has moved on, and its mirror needs what nothing pins any more: gone,
// and made again from one new read as soon as the standby has replayed it.
func TestD17SlotHasMoved(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	before := s.Slot(s.B, "cdc")
	s.Exec(s.B, "SELECT pg_wal_replay_pause()")
	s.Reshape(s.A)
	s.Pass(s.A, "cdc")
	s.Safe([]string{"cdc"})
	if now := s.Slot(s.B, "cdc"); now != before {
		t.Errorf("the scene is not set: the mirror has moved from %v to %v", before, now)
	}
	s.Exec(s.A, dropHold)
	s.VacuumCatalogs(s.A)
	s.Verdict("cdc", s.B, plan.Pending, plan.ReasonReplayLag)
	if s.Has(s.B, "cdc") {
		t.Error("the mirror is still there although its rows are not held")
	}
	s.Logged("protection_gap")
	s.Exec(s.B, "SELECT pg_wal_replay_resume()")
	s.Safe([]string{"cdc"})

	s.StopDaemon()
	s.Exec(s.A, "INSERT INTO t SELECT 'c' || i FROM generate_series(1, 10) i")
	want := s.Peek(s.A, "cdc")
	s.Pass(s.A, "cdc")
	s.VacuumCatalogs(s.A)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
