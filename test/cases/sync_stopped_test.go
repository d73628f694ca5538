package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Somebody has left a slot of the name of a failover slot on a standby. The server's
// own worker ends with an error at it, for all slots. That is said, also of a slot that
// nobody selected; dropped as the hint says, the worker makes its copies.
func TestLeftoverStopsTheServersWorker(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Major: harness.ServerSync(t), Settings: serverSync()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Exec(s.B, "SELECT pg_create_physical_replication_slot('native')")
	failoverSlot(s, s.A, "native")
	s.Logical(s.A, "plain")
	s.Run("slots: {include: [{name: plain}]}")
	s.Safe([]string{"plain"})
	found := s.Condition(plan.CondSlotSyncStopped)
	said, mends, ok := strings.Cut(found.Hint, "drop it there: ")
	if found.Subject != "b/native" || found.Severity != plan.Critical || !ok {
		t.Fatalf("%s of %s: %q, hint %q", found.Severity, found.Subject, found.Message, said)
	}
	s.Wait("the server's worker to end at it", func() (bool, string) {
		s.Has(s.B, "native") // a connection wakes the postmaster, which starts the worker again
		return strings.Contains(s.B.LogTail(10000), `same name slot "native" already exists`), "its log does not say so"
	})
	s.Exec(s.B, mends)
	s.NoCondition(plan.CondSlotSyncStopped)
	s.Wait("the server's copy", func() (bool, string) {
		s.Exec(s.A, "SELECT pg_log_standby_snapshot()")
		s.Get(s.A, "native")
		return s.Text(s.B, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'native' AND synced AND NOT temporary") == "1", "it is not made"
	})
}
