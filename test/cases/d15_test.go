package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D15: the controller waits on both nodes all the time, and vacuum removes what
// is deleted meanwhile, on the primary and as far as the standby's feedback goes.
func TestD15WaitingHoldsNothingBack(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{OnB: withFeedback(), Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 10000) i")
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})
	const waiting = "FROM pg_stat_activity WHERE usename = '" + lab.RoleName + "' AND query LIKE 'CALL slotkeeper.wait_for_change%' AND wait_event_type = 'Extension'"
	for _, n := range s.Nodes() {
		s.Wait("the controller to wait on "+n.Name(), func() (bool, string) {
			got := s.Text(n, "SELECT count(*) "+waiting)
			return got == "1", got + " sessions wait"
		})
		if got := s.Text(n, "SELECT count(*) "+waiting+" AND backend_xmin IS NOT NULL"); got != "0" {
			t.Errorf("the session that waits on %s holds a snapshot", n.Name())
		}
	}
	s.Exec(s.A, "DELETE FROM t")
	s.Wait("vacuum to remove the rows", func() (bool, string) {
		s.Exec(s.A, "VACUUM t")
		size := s.Text(s.A, "SELECT pg_relation_size('t')")
		return size == "0", size + " bytes are left"
	})
}
