package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A standby is promoted while the old primary still takes writes. Both are named, and
// nothing is written anywhere until the old one is stopped, as the hint says; then the
// promoted one is the primary.
func TestSplitBrain(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	s.OK(s.B.Promote(s.Ctx))
	found := s.Condition(plan.CondSplitBrain)
	if found.Severity != plan.Critical || !strings.Contains(found.Message, "a on timeline 1, b on timeline 2") || !strings.Contains(found.Hint, "stop the one") {
		t.Errorf("%s: %q, hint %q", found.Severity, found.Message, found.Hint)
	}
	mirror, left := s.Slot(s.C, "cdc"), s.Slot(s.B, "cdc")
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	s.Cycles(3)
	if now := s.Slot(s.C, "cdc"); now != mirror {
		t.Errorf("the mirror went from %v to %v", mirror, now)
	}
	if now := s.Slot(s.B, "cdc"); now != left {
		t.Errorf("the slot of the promoted one went from %v to %v", left, now)
	}
	s.OK(s.A.StopFast(s.Ctx))
	s.NoCondition(plan.CondSplitBrain)
	if doc, _ := s.Status(); doc.Primary == nil || doc.Primary.Node != "b" {
		t.Errorf("the primary is %+v", doc.Primary)
	}
}
