package cases

import (
	"fmt"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D01, D17, D06 and D16 one after the other, on standbys that get their WAL late or
// from another standby, with feedback and without: a slot made beside a busy one,
// holds that are dropped while the slot itself still pins, a backend that crashes,
// feedback that goes off and on. Rows that only the holds keep are there at the end.
func TestHoldOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, chains, func(t *testing.T, o harness.Options) {
		o.Settings = harness.Still()
		s := harness.Mirrored(t, o)
		last := last(s)

		// D01
		stop := s.Busy(s.A, "cdc")
		s.Logical(s.A, "fresh")
		s.Safe([]string{"cdc", "fresh"})
		stop()

		// D17
		s.FreezeDaemon()
		generation := s.Generation(last, "fresh")
		for _, n := range s.Nodes() {
			s.Exec(n, dropHold)
		}
		s.VacuumCatalogs(s.A)
		s.ThawDaemon()
		s.Wait("the holds of a new generation", func() (bool, string) {
			now := s.Generation(last, "fresh")
			return now > generation && s.Has(s.A, cluster.HoldName), fmt.Sprintf("the mirror is of generation %d", now)
		})
		s.Safe([]string{"cdc", "fresh"})
		s.FreezeDaemon()

		// D06 and D16
		s.Reshape(s.A)
		want := s.Peek(s.A, "fresh")
		s.Pass(s.A, "cdc")
		s.Pass(s.A, "fresh")
		s.CrashBackend(s.A)
		if o.OnB.Feedback {
			s.Feedback("off")
			s.VacuumCatalogs(s.A)
			s.Feedback("on")
		}
		s.VacuumCatalogs(s.A)
		s.OK(last.WaitCatchup(s.Ctx, s.A))
		s.FailOver(last)
		s.Same(s.Get(last, "fresh"), want)
	})
}
