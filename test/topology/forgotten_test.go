package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// The physical slot of a standby that is gone for good keeps WAL on the primary. Once
// the member is forgotten, and nobody has streamed through the slot for five minutes,
// that is said, with what ends it. No other slot is suspected: neither ours nor that
// of a standby that streams.
func TestSlotOfAStandbyThatIsGone(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Lasts: 15 * time.Minute})
	s.OK(s.C.Kill(s.Ctx))
	s.Verdict("cdc", s.C, plan.Unknown, plan.ReasonUnreachable)
	s.Reload("    - {name: c, ", "    # - {name: c, ")
	if r := s.Slotkeeper("forget", "c"); r.Code != 0 {
		t.Fatalf("forget ends with %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	s.NoCondition(plan.CondOrphanPhysicalSlot)
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	for range 5 {
		s.Lasts(time.Minute)
	}
	found := s.Condition(plan.CondOrphanPhysicalSlot)
	slot := s.C.SlotName()
	said, mends, ok := strings.Cut(found.Hint, "for good: ")
	if found.Subject != slot || found.Severity != plan.Warning || !strings.Contains(found.Message, "physical slot "+slot+" on a") || !strings.Contains(found.Message, "bytes of WAL") {
		t.Errorf("%s of %s: %s", found.Severity, found.Subject, found.Message)
	}
	if !ok {
		t.Fatalf("the hint is %q", said)
	}
	doc, _ := s.Status()
	for _, other := range doc.Conditions {
		if other.Code == plan.CondOrphanPhysicalSlot && other.Subject != slot {
			t.Errorf("%s is suspected: %s", other.Subject, other.Message)
		}
	}
	s.Exec(s.A, mends)
	s.NoCondition(plan.CondOrphanPhysicalSlot)
	s.Safe([]string{"cdc"}, s.B)
}
