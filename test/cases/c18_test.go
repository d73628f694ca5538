package cases

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C18: the standby has wal_level = replica. A logical slot there would keep it
// from starting, so none is made, and the standby starts. From 19 on the server
// decodes on that level too as soon as there is a logical slot (effective_wal_level),
// a standby as its primary does: there it is made, and outlives the restart.
func TestC18WalLevelOfTheStandby(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2,
		OnB: lab.StandbyOptions{Settings: map[string]string{"wal_level": "replica"}}, OnC: &lab.StandbyOptions{}})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.RunEvery(100*time.Millisecond, "")
	if harness.Major(t) >= 19 {
		s.Safe([]string{"cdc"})
		s.OK(s.B.Restart(s.Ctx))
		s.Safe([]string{"cdc"})
		s.Exec(s.A, "INSERT INTO t VALUES (1)")
		s.OK(s.B.WaitCatchup(s.Ctx, s.A))
		s.StopDaemon()
		s.FailOver(s.B)
		s.Same(s.Get(s.B, "cdc"), []string{"table public.t: INSERT: id[integer]:1"})
		return
	}
	s.Safe([]string{"cdc"}, s.C)
	refused := s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonWalLevel)
	if !strings.Contains(refused.Message, "wal_level is replica on b") || !strings.Contains(refused.Hint, "wal_level = logical") {
		t.Errorf("%q, hint %q", refused.Message, refused.Hint)
	}
	s.Cycles(5)
	if s.Has(s.B, "cdc") {
		t.Error("b has the slot all the same")
	}
	s.NoComplaints(plan.CondFeedbackOff, plan.CondNoSafeCandidate)

	s.OK(s.B.Restart(s.Ctx))
	s.OK(s.B.Set(s.Ctx, map[string]string{"wal_level": "logical"}))
	s.OK(s.B.Restart(s.Ctx))
	s.Safe([]string{"cdc"})
}
