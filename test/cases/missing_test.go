package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// The primary has no slot of the name that a standby streams by. That is said until
// there is one; the mirrors on the standby are none the worse for it.
func TestPhysicalSlotMissing(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{})
	s.OK(s.B.Set(s.Ctx, map[string]string{"primary_slot_name": "elsewhere"}))
	found := s.Condition(plan.CondPhysicalSlotMissing)
	if found.Subject != "b" || found.Severity != plan.Warning || !strings.Contains(found.Message, "no physical slot elsewhere") || !strings.Contains(found.Hint, "create it") {
		t.Errorf("%s of %s: %q, hint %q", found.Severity, found.Subject, found.Message, found.Hint)
	}
	s.Safe([]string{"cdc"})
	s.Exec(s.A, "SELECT pg_create_physical_replication_slot('elsewhere', true)")
	s.NoCondition(plan.CondPhysicalSlotMissing)
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	s.Mirrored("cdc", s.B)
}

// While there is no primary somebody drops the mirror on one standby. That one would
// have no slot after a promotion, and it is said of it alone.
func TestMirrorGoneWithoutAPrimary(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2})
	s.OK(s.A.StopFast(s.Ctx))
	s.Condition(plan.CondNoLeader)
	s.Exec(s.B, "SELECT pg_drop_replication_slot('cdc')")
	found := s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonSlotMissing)
	if !strings.Contains(found.Message, "b has no mirror of cdc") || !strings.Contains(found.Hint, "SAFE") {
		t.Errorf("it is said: %q, hint %q", found.Message, found.Hint)
	}
	s.Verdict("cdc", s.C, plan.Safe, "")
	s.OK(s.A.Start(s.Ctx))
	s.Safe([]string{"cdc"})
}
