package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A controller that begins while there is no primary sees the mirror, and cannot know
// whether it was protected all the time: it is UNKNOWN, not SAFE, and stays as it is.
func TestBegunWithoutAPrimary(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{})
	before := s.Slot(s.B, "cdc")
	s.StopDaemon()
	s.OK(s.A.StopFast(s.Ctx))
	s.Run()
	found := s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonStale)
	if !strings.Contains(found.Message, "b has a mirror of cdc") || !strings.Contains(found.Hint, "SAFE") {
		t.Errorf("it is said: %q, hint %q", found.Message, found.Hint)
	}
	s.Condition(plan.CondNoLeader)
	if r := s.Slotkeeper("status"); r.Code != 4 {
		t.Errorf("status ends with %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	s.Cycles(3)
	if now := s.Slot(s.B, "cdc"); now != before {
		t.Errorf("the mirror went from %v to %v", before, now)
	}
	s.OK(s.A.Start(s.Ctx))
	s.Safe([]string{"cdc"})
	if s.Incarnation(s.B, "cdc") != before.Incarnation {
		t.Error("the mirror was made anew")
	}
}
