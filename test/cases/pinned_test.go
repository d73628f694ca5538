package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// What keeps dead rows for very long is told of, as nothing in PostgreSQL bounds it:
// a slot that nobody mirrors and nobody consumes from, and the hold, for a
// standby that stands still while its slots go on.
func TestOldPinsAreToldOf(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: settings(harness.Still(), map[string]string{"autovacuum_freeze_max_age": "100000"})})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc", "lagging")
	s.Run("slots: {exclude: [{name: lagging}]}")
	s.Safe([]string{"cdc"})
	s.Cycles(1)
	s.NoCondition(plan.CondXminPinned)
	s.Exec(s.B, "SELECT pg_wal_replay_pause()")
	s.FreezeDaemon() // before cdc has passed it would be told of both
	s.Exec(s.A, "DO $$ BEGIN FOR i IN 1..10100 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$")
	s.Pass(s.A, "cdc")
	s.ThawDaemon()

	pinned := s.Condition(plan.CondXminPinned)
	if x := s.Pins(s.A, "lagging").String(); pinned.Subject != "lagging" || !strings.Contains(pinned.Message, "catalog_xmin "+x) {
		t.Errorf("of %s it is said: %q; lagging pins from %s", pinned.Subject, pinned.Message, x)
	}
	held := s.Condition(plan.CondHoldAge)
	if held.Subject != "a" || !strings.Contains(held.Message, "autovacuum_freeze_max_age (100000)") {
		t.Errorf("of %s it is said: %q", held.Subject, held.Message)
	}
	s.Exec(s.B, "SELECT pg_wal_replay_resume()")
	s.NoCondition(plan.CondHoldAge)
	s.Condition(plan.CondXminPinned)
	s.Pass(s.A, "lagging")
	s.NoCondition(plan.CondXminPinned)
}
