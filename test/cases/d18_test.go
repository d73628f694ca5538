package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// unseen is D18's beginning: A to B, and B dies before the controller has seen
// it. On B nothing held for the others: rows go that their slots need. Then
// another is promoted, and A names it.
func unseen(t *testing.T, next func(s *harness.Scene) *lab.Node) (s *harness.Scene, last harness.Slot) {
	t.Helper()
	s = harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	last = s.Slot(s.A, "cdc")
	s.FreezeDaemon()
	s.SwitchOver(s.B) // and B names the former A
	s.Exec(s.A, dropHold)
	s.Reshape(s.A)
	s.Pass(s.A, "cdc")
	s.VacuumCatalogs(s.A)
	s.Level()
	for _, n := range s.Nodes()[1:] {
		s.OK(n.WaitCatchup(s.Ctx, s.A))
	}
	to := next(s)
	s.FailOver(to)
	s.Leads(to)
	return s, last
}

// A mirror of timeline 1 on timeline 3: of the time between nobody knows whether
// anything held for it. It must be gone before a consumer uses it.
func TestD18MirrorsPastAnUnseenPrimary(t *testing.T) {
	t.Parallel()
	for name, judge := range leaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, last := unseen(t, func(s *harness.Scene) *lab.Node { return s.C })
			judge(s)
			s.Wait("the unproven slot to go", func() (bool, string) { return !s.Has(s.A, "cdc"), "it is still there" })
			missing := s.Condition(plan.CondSlotMissing)
			if missing.Subject != "cdc" || missing.Severity != plan.Critical {
				t.Errorf("the condition is %s of %s", missing.Severity, missing.Subject)
			}
			if name == "the same leader" && !strings.Contains(missing.Message, last.Confirmed.String()) {
				t.Errorf("%q does not say that it was last seen at %s", missing.Message, last.Confirmed)
			}
			s.Cycles(3)
			if s.Has(s.A, "cdc") {
				t.Error("it was made again")
			}
			if n := told(s, plan.CondSlotMissing); n != 1 {
				t.Errorf("that it is missing was said %d times", n)
			}
		})
	}
}

// A is promoted again with its own old slots. Those are their consumers', and no
// gate was asked: what can be lost is said loudly.
func TestD18OwnOldSlots(t *testing.T) {
	t.Parallel()
	s, _ := unseen(t, func(s *harness.Scene) *lab.Node { return s.B })
	s.ThawDaemon()
	old := s.Condition(plan.CondProtectionGap)
	if old.Subject != "cdc" || old.Severity != plan.Critical || !strings.Contains(old.Message, "timeline 1") || !strings.Contains(old.Hint, "drop it") {
		t.Errorf("the condition is %s of %s: %q, hint %q", old.Severity, old.Subject, old.Message, old.Hint)
	}
	s.Behind(s.B)
	s.Cycles(3)
	if n := told(s, plan.CondProtectionGap); n != 1 {
		t.Errorf("that was said %d times", n)
	}
	doc, _ := s.Status()
	for _, slot := range doc.Slots {
		if len(slot.Standbys) != 0 {
			t.Errorf("a slot that cannot be relied on is mirrored: %+v", slot)
		}
	}
}

// The controller has seen B, which held for all, and could move nothing on C
// before B died: C's mirror is of timeline 1, and complete.
func TestD18CoveredByTheHoldBetween(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	s.Reshape(s.A)
	want := s.Peek(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.Mirrored("cdc", s.C)
	s.SwitchOver(s.B)
	s.Safe([]string{"cdc"})
	s.Exec(s.C, "SELECT pg_wal_replay_pause()")
	s.Exec(s.A, "ALTER TABLE t ADD COLUMN c text")
	s.Pass(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.VacuumCatalogs(s.A)
	s.Level()
	if made := s.Text(s.C, "SELECT (marker).timeline FROM slotkeeper.slots() WHERE name = 'cdc'"); made != "1" {
		t.Fatalf("the scene is not set: the mirror on c is of timeline %s", made)
	}
	s.FreezeDaemon() // nothing moves the mirror on while c replays the rest
	s.FailOver(s.C)
	s.Leads(s.C)
	s.Same(s.Peek(s.A, "cdc"), want)
	s.ThawDaemon()
	s.Behind(s.B)
	s.Safe([]string{"cdc"}, s.B)
	s.Same(s.Get(s.A, "cdc"), want)
}
