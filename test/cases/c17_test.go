package cases

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C17: the primary has five logical slots, the standby room for three, two of
// which slotkeeper's own holds need. One slot gets the room, always the same;
// the others say what is needed and what is there.
func TestC17NoFreeSlot(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{OnB: lab.StandbyOptions{Settings: map[string]string{"max_replication_slots": "3"}}})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "e", "d", "c", "b", "a")
	s.RunEvery(100*time.Millisecond, "")
	s.Safe([]string{"a"})
	without := func(names ...string) {
		t.Helper()
		for _, name := range names {
			p := s.Verdict(name, s.B, plan.Unsafe, plan.ReasonNoFreeSlot)
			for _, want := range []string{"7 are needed", "3 are available"} {
				if !strings.Contains(p.Message, want) {
					t.Errorf("%s: no %q in %q", name, want, p.Message)
				}
			}
			if !strings.Contains(p.Hint, "max_replication_slots there to 7 ") {
				t.Errorf("%s: the hint is %q", name, p.Hint)
			}
		}
	}
	without("b", "c", "d", "e")
	if r := s.Slotkeeper("sync"); r.Code != 3 || strings.Count(r.Stdout, "UNSAFE") != 4 {
		t.Errorf("sync ends with %d:\n%s", r.Code, r.Stdout)
	}

	// Stable: whoever is there stays, also beside a new one that comes before it by
	// name, and nothing is tried again and again.
	mirror := s.Slot(s.B, "a").Incarnation
	s.Logical(s.A, "a0")
	s.Exec(s.A, "SELECT pg_drop_replication_slot('e')")
	without("a0", "b", "c", "d")
	s.Cycles(5)
	s.Safe([]string{"a"})
	if now := s.Slot(s.B, "a").Incarnation; now != mirror {
		t.Errorf("the mirror was made anew: %s, then %s", mirror, now)
	}
	s.NoComplaints(plan.CondFeedbackOff, plan.CondNoSafeCandidate)

	// Its room goes to the next by name, and to nobody else.
	s.Exec(s.A, "SELECT pg_drop_replication_slot('a')")
	s.Safe([]string{"a0"})
	if names := s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical'"); !slices.Equal(names, []string{"a0"}) {
		t.Errorf("b has %q", names)
	}
	// With room for all, all come.
	s.OK(s.B.Set(s.Ctx, map[string]string{"max_replication_slots": "7"}))
	s.OK(s.B.Restart(s.Ctx))
	s.Safe([]string{"a0", "b", "c", "d"})
}
