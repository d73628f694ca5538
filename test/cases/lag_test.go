package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A mirror that is SAFE and a segment of WAL behind its slot deserves a look: so much
// would come to the consumer again. That ends when the standby has replayed it.
func TestLagIsToldOf(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.B, "SELECT pg_wal_replay_pause()")
	for range 2 {
		s.Exec(s.A, "INSERT INTO t VALUES (1); SELECT pg_switch_wal()")
		s.Get(s.A, "cdc")
	}
	found := s.Condition(plan.CondLag)
	if found.Subject != "cdc/b" || found.Severity != plan.Info || !strings.Contains(found.Hint, "replay") {
		t.Errorf("%s of %s: %q, hint %q", found.Severity, found.Subject, found.Message, found.Hint)
	}
	s.Safe([]string{"cdc"})
	if p := s.Now("cdc", s.B); p.LagBytes.V < 16<<20 {
		t.Errorf("it is %d bytes behind", p.LagBytes.V)
	}
	s.Exec(s.B, "SELECT pg_wal_replay_resume()")
	s.NoCondition(plan.CondLag)
}
