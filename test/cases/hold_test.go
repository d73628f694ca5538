package cases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Things that befall the primary's hold. Each is done while nobody looks, and
// has the controller look again when it gives back control.
var mishaps = map[string]struct {
	byHand bool // what stands there now carries no mark: somebody must take it away
	done   func(s *harness.Scene)
}{
	"made again by hand": {true, func(s *harness.Scene) {
		s.Exec(s.A, dropHold+"; SELECT pg_create_physical_replication_slot('slotkeeper_hold')")
	}},
	"restored from an old disk": {true, func(s *harness.Scene) {
		s.OK(s.A.StopFast(s.Ctx))
		hold := filepath.Join(s.A.DataDir(), "pg_replslot", cluster.HoldName)
		s.OK(os.RemoveAll(hold))
		copied(s, oldDisk(s), hold)
		s.OK(s.A.Start(s.Ctx))
		s.OK(s.B.WaitStreaming(s.Ctx))
	}},
	"overtaken": {false, func(s *harness.Scene) {
		code := s.Text(s.A, `SELECT o.code FROM slotkeeper.node() n, slotkeeper.slots() h,
			LATERAL slotkeeper.hold(n.fence, (h.marker).generation,
				ARRAY[(pg_snapshot_xmax(pg_current_snapshot())::text::xid, NULL, NULL)::slotkeeper.want], NULL) o
			WHERE h.name = 'slotkeeper_hold'`)
		if code != "held" {
			s.T.Fatalf("the scene is not set: raising the hold by hand gave %s", code)
		}
	}},
}

func oldDisk(s *harness.Scene) string { return filepath.Join(s.Lab.Dir(), "olddisk") }

func copied(s *harness.Scene, from, to string) {
	s.T.Helper()
	if out, err := exec.CommandContext(s.Ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		s.T.Fatalf("copying %s: %v\n%s", from, err, out)
	}
}

// Where the slots themselves still pin what their mirrors need, nothing is
// lost: the mirrors stay, and are held again as soon as nothing is in the way.
// It is told of once, and not once per slot and cycle.
func TestHoldMishapSlotsStillPin(t *testing.T) {
	t.Parallel()
	for name, mishap := range mishaps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.New(t, harness.Options{Settings: harness.Still()})
			s.Exec(s.A, "CREATE TABLE t (id int)")
			slots := []string{"cdc", "second", "third"}
			s.Logical(s.A, slots...)
			s.Run()
			s.Safe(slots)
			copied(s, filepath.Join(s.A.DataDir(), "pg_replslot", cluster.HoldName), oldDisk(s))
			before := map[string]string{}
			for _, slot := range slots {
				before[slot] = s.Incarnation(s.B, slot)
			}
			s.FreezeDaemon()
			s.Exec(s.A, "CREATE TABLE u ()") // for a transaction id beyond what is held
			mishap.done(s)
			s.ThawDaemon()
			if mishap.byHand {
				takenAway(s, slots)
			}
			s.Safe(slots)
			s.FreezeDaemon()
			for _, slot := range slots {
				if now := s.Incarnation(s.B, slot); now != before[slot] {
					t.Errorf("the mirror of %s was made again although nothing was lost", slot)
				}
			}
			if n := told(s, plan.CondHoldMissing); mishap.byHand && n != 1 || n > 1 {
				t.Errorf("hold_missing was logged %d times", n)
			}

			// It is worth as much as before.
			s.Reshape(s.A)
			want := s.Peek(s.A, "cdc")
			s.Pass(s.A, "cdc")
			s.VacuumCatalogs(s.A)
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.FailOver(s.B)
			s.Same(s.Get(s.B, "cdc"), want)
		})
	}
}

// takenAway sees the controller report a hold without a mark and touch nothing,
// and does what the hint says.
func takenAway(s *harness.Scene, slots []string) {
	s.T.Helper()
	missing := s.Condition(plan.CondHoldMissing)
	if !strings.Contains(missing.Hint, dropHold) || missing.Severity != plan.Critical {
		s.T.Errorf("the condition is %s: %q, hint %q", missing.Severity, missing.Message, missing.Hint)
	}
	foreign := s.Incarnation(s.A, cluster.HoldName)
	for _, slot := range slots {
		s.Verdict(slot, s.B, plan.Unsafe, plan.ReasonProtectionGap)
	}
	s.Cycles(3)
	if s.Incarnation(s.A, cluster.HoldName) != foreign {
		s.T.Error("a slot without slotkeeper's mark was touched")
	}
	s.Exec(s.A, dropHold)
}

// told counts how often the log says that a condition stands.
func told(s *harness.Scene, code string) int {
	s.T.Helper()
	times := 0
	for _, line := range s.Log() {
		if line["@message"] == "condition" && line["code"] == code {
			times++
		}
	}
	return times
}

// Where the slot has moved on, and rows that its mirror needs are gone, the
// mirror must go. It is made again as soon as something holds for it.
func TestHoldMishapSlotHasMoved(t *testing.T) {
	t.Parallel()
	for name, mishap := range mishaps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
			copied(s, filepath.Join(s.A.DataDir(), "pg_replslot", cluster.HoldName), oldDisk(s))
			before := s.Slot(s.B, "cdc")
			s.FreezeDaemon()
			s.Reshape(s.A)
			s.Pass(s.A, "cdc")
			if mishap.byHand {
				s.Exec(s.A, dropHold)
				s.VacuumCatalogs(s.A)
				s.Exec(s.A, "SELECT pg_create_physical_replication_slot('slotkeeper_hold')")
			}
			mishap.done(s)
			s.VacuumCatalogs(s.A)
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.ThawDaemon()
			s.Wait("the mirror whose rows are gone to go", func() (bool, string) {
				return !s.Has(s.B, "cdc") || s.Incarnation(s.B, "cdc") != before.Incarnation, "it is there"
			})
			rowsGone(s)
			if mishap.byHand {
				s.Condition(plan.CondHoldMissing)
				s.Exec(s.A, dropHold)
			}
			s.Safe([]string{"cdc"})

			s.Exec(s.A, "INSERT INTO t SELECT 'c' || i FROM generate_series(1, 10) i")
			want := s.Peek(s.A, "cdc")
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.FailOver(s.B)
			s.Same(s.Get(s.B, "cdc"), want)
		})
	}
}

// A standby is away for longer than protection.max_hold_age: it is given up,
// once and for all that it has, and rows go that its mirrors need. When it comes
// back they go too, and are made anew.
func TestStandbyAwayTooLong(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	slots := []string{"cdc", "still"}
	s.Logical(s.A, slots...)
	s.Run("protection: {max_hold_age: 1s}")
	s.Safe(slots)
	old := s.Slot(s.B, "cdc")
	s.OK(s.B.StopFast(s.Ctx))
	s.Reshape(s.A)
	for _, slot := range slots {
		s.Pass(s.A, slot)
	}
	s.Condition(plan.CondHoldAge)
	s.Wait("the hold to be raised", func() (bool, string) {
		at := s.Pins(s.A, cluster.HoldName)
		return old.CatalogXmin.Precedes(at), fmt.Sprintf("it pins from %d", at)
	})
	s.VacuumCatalogs(s.A)
	if s.Judged("cdc", s.C, plan.Unsafe, plan.ReasonProtectionGap) {
		t.Error("the mirrors on c suffer for it")
	}

	s.OK(s.B.Start(s.Ctx))
	s.Wait("the controller to say that rows are gone", func() (bool, string) {
		log := s.Daemon.LogTail(10000) // from 16 on the server may be the first to find out
		return strings.Contains(log, string(plan.ReasonProtectionGap)) || strings.Contains(log, string(plan.ReasonRowsRemoved)), "it has not"
	})
	s.Safe(slots)
	s.NoCondition(plan.CondHoldAge)
	if s.Incarnation(s.B, "cdc") == old.Incarnation {
		t.Error("the mirror whose rows are gone is still there")
	}
	if n := told(s, plan.CondHoldAge); n != 1 {
		t.Errorf("hold_age was logged %d times", n)
	}
	s.Exec(s.A, "INSERT INTO t SELECT 'c' || i FROM generate_series(1, 10) i")
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.Safe(slots)
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
