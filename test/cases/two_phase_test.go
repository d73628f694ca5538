package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// The worker of 17 copies a slot's two_phase and leaves its two_phase_at behind, so
// that a promoted copy decodes prepared transactions and does not know from where on.
// No mirror of it is made, and that is said, until it is created again, as the hint
// says. From 18 on the worker copies both, and there is a mirror at once.
func TestTwoPhaseAtLeftBehind(t *testing.T) {
	t.Parallel()
	major := harness.ServerSync(t)
	s := harness.New(t, harness.Options{Major: major, Settings: serverSync()})
	s.Exec(s.A, "CREATE TABLE t (who text); CREATE PUBLICATION p FOR TABLE t")
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('cdc', 'pgoutput', false, false, true)")
	s.Wait("the server's copy", func() (bool, string) {
		s.Exec(s.A, "SELECT pg_log_standby_snapshot()")
		prepared(s, s.A, "get", true) // turns two_phase on, as the slot's subscriber does
		return s.Text(s.B, "SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary AND two_phase") == "1", "there is none"
	})
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.OK(s.A.StopFast(s.Ctx))
	s.OK(s.B.Promote(s.Ctx))
	s.OK(s.A.Follow(s.Ctx, s.B))
	s.OK(s.A.Set(s.Ctx, map[string]string{"sync_replication_slots": "off"})) // the mirror is slotkeeper's to make
	s.OK(s.A.Start(s.Ctx))
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Run()
	if major >= 18 {
		s.Safe([]string{"cdc"}, s.A)
		return
	}
	found := s.Verdict("cdc", s.A, plan.Unsafe, plan.ReasonTwoPhaseUnsupported)
	if !strings.Contains(found.Message, "two_phase_at") || !strings.Contains(found.Hint, "create the slot again without two_phase") {
		t.Errorf("it is said: %q, hint %q", found.Message, found.Hint)
	}
	s.Cycles(3)
	if s.Has(s.A, "cdc") {
		t.Error("a has a mirror all the same")
	}
	s.Exec(s.B, "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(s.B, "SELECT pg_create_logical_replication_slot('cdc', 'pgoutput')")
	s.Safe([]string{"cdc"}, s.A)
}
