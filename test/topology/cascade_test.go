package topology

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C stands behind B, which stands behind A. B is promoted, then A again, and
// from each of them everything comes that the slot had not confirmed.
func TestCascadeThroughTwoPromotions(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Cascade: true, Settings: harness.Rewindable()})
	s.Reshape(s.A)
	want := s.Peek(s.A, "cdc")
	s.Level()
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	s.Safe([]string{"cdc"})
	s.FailOver(s.B)
	s.Leads(s.B)
	s.Safe([]string{"cdc"}, s.C)
	s.Same(s.Peek(s.A, "cdc"), want)

	s.Behind(s.B)
	s.Exec(s.A, "INSERT INTO t SELECT 'c' || i FROM generate_series(1, 10) i")
	want = s.Peek(s.A, "cdc")
	s.Level()
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	s.Safe([]string{"cdc"})
	s.FailOver(s.B)
	s.Leads(s.B)
	s.Same(s.Peek(s.A, "cdc"), want)
	s.Behind(s.C)
	s.Safe([]string{"cdc"}, s.C)
	s.Same(s.Get(s.A, "cdc"), want)
}
