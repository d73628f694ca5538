package cases

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C31: a brand-new slot that nobody reads is SAFE two cycles after the standby
// has replayed what it needs, and its consumer gets all that came after it.
func TestC31NewIdleSlot(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Still(s.A)
	s.Logical(s.A, "first")
	s.RunEvery(100*time.Millisecond, "")
	s.Safe([]string{"first"})

	s.Logical(s.A, "fresh")
	s.SafeWithin(2, "fresh", s.B)
	s.StopDaemon()
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	if rows := s.Get(s.B, "fresh"); len(rows) != 10 {
		t.Errorf("%d of 10 rows arrived", len(rows))
	}
}

// C31: the standby does not have the WAL of an old slot any more. Time does not
// mend that; its consumer does. What is not proven is not there after a promotion.
func TestC31WALIsGone(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "idle", "read")
	for range 3 {
		s.Exec(s.A, "INSERT INTO t VALUES (0)")
		s.Exec(s.A, "SELECT pg_switch_wal()")
		s.Exec(s.A, "CHECKPOINT")
		s.OK(s.B.WaitCatchup(s.Ctx, s.A))
		s.Exec(s.B, "CHECKPOINT")
	}
	s.RunEvery(100*time.Millisecond, "")
	gone := s.Verdict("idle", s.B, plan.Pending, plan.ReasonWALMissing)
	needs := s.Slot(s.A, "idle").Restart.String()
	has := oldestWAL(s, s.B)
	if !strings.Contains(gone.Message, "needs WAL from "+needs) || !strings.Contains(gone.Message, "has WAL from "+has) {
		t.Errorf("%q does not say that it needs %s and %s has %s", gone.Message, needs, s.B.Name(), has)
	}
	s.Get(s.A, "read") // restart_lsn to the first record of running transactions,
	s.Get(s.A, "read") // and to the last one
	s.Mirrored("read", s.B)
	s.Cycles(5)
	s.Verdict("idle", s.B, plan.Pending, plan.ReasonWALMissing)

	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	if s.Has(s.B, "idle") {
		t.Error("the slot idle is there after the promotion, without its WAL")
	}
	if rows := s.Get(s.B, "read"); len(rows) != 1 {
		t.Errorf("%q arrived, want one row", rows)
	}
}

// oldestWAL is where the oldest segment of a node begins.
func oldestWAL(s *harness.Scene, n *lab.Node) string {
	name := s.Text(n, "SELECT min(name) FROM pg_ls_waldir() WHERE length(name) = 24")
	high, err := strconv.ParseUint(name[8:16], 16, 32)
	s.OK(err)
	segment, err := strconv.ParseUint(name[16:], 16, 8)
	s.OK(err)
	return cluster.LSN(high<<32 | segment<<24).String()
}
