package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A standby has not replayed CREATE EXTENSION yet. That is said of it alone, with what
// mends it; the other standby has its mirror, and this one too once it has replayed.
func TestExtensionNotReplayed(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2})
	s.Exec(s.A, "DROP EXTENSION slotkeeper")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.Exec(s.B, "SELECT pg_wal_replay_pause()")
	s.OK(lab.SetupRole(s.Ctx, s.A))
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"}, s.C)
	found := s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonExtensionUnavailable)
	if !strings.Contains(found.Message, "cannot be used on b") || !strings.Contains(found.Hint, "CREATE EXTENSION slotkeeper") {
		t.Errorf("it is said: %q, hint %q", found.Message, found.Hint)
	}
	s.Exec(s.B, "SELECT pg_wal_replay_resume()")
	s.Safe([]string{"cdc"})
}
