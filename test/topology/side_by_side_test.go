package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Five standbys side by side. One is delayed, one's replay is paused, one is
// behind a black hole and one is dead: each of them gets the verdict that is
// its own, and the fifth follows the slot as it did when all were well.
func TestFiveStandbysFourOfThemBad(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{
		Standbys: 5, OnC: &lab.StandbyOptions{Settings: map[string]string{"max_standby_streaming_delay": "-1"}}, // no query ends by its resuming
	})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc", "still")
	network := s.Link(s.E)
	s.Run()
	s.Safe([]string{"cdc", "still"})
	defer s.Busy(s.A, "cdc")()
	healthy := follows(s, s.F)

	s.Delay(s.B, 10*time.Minute)
	s.Exec(s.C, "SELECT pg_wal_replay_pause()")
	s.OK(s.D.Kill(s.Ctx))
	network.Stall()
	s.Verdict("cdc", s.D, plan.Unknown, plan.ReasonUnreachable)
	s.Verdict("cdc", s.E, plan.Unknown, plan.ReasonUnreachable)
	bad := follows(s, s.F)
	t.Logf("the mirror on f moved %d times while all were well, %d times beside the bad ones", healthy, bad)
	if bad*8 < healthy {
		t.Errorf("the mirror on f moved %d times while the consumer confirmed so often, and only %d times beside bad standbys", healthy, bad)
	}

	// What is far behind is safe there; what is new waits and says for what.
	s.Logical(s.A, "fresh")
	s.Safe([]string{"cdc", "still", "fresh"}, s.F)
	for _, on := range []*lab.Node{s.B, s.C} {
		s.Safe([]string{"cdc", "still"}, on)
		s.NotBeyondReplay(on, "cdc")
		waits := s.Verdict("fresh", on, plan.Pending, plan.ReasonReplayLag)
		if !strings.Contains(waits.Message, "bytes behind") {
			t.Errorf("on %s: %q", on.Name(), waits.Message)
		}
	}
	doc, _ := s.Status()
	for _, on := range []*lab.Node{s.D, s.E} {
		for _, slot := range []string{"cdc", "still"} {
			if p, ok := harness.Pair(doc, slot, on.Name()); !ok || p.Verdict != plan.Unknown || !p.Mirror.OK {
				t.Errorf("%s on %s is %s %s with mirror %v, want UNKNOWN, and where the mirror was last seen", slot, on.Name(), p.Verdict, p.Reason, p.Mirror)
			}
		}
	}
	s.NoCondition(plan.CondNoSafeCandidate)

	// All come back, and all are what they were.
	network.Heal()
	s.OK(s.D.Start(s.Ctx))
	s.Delay(s.B, 0)
	s.Exec(s.C, "SELECT pg_wal_replay_resume()")
	s.Safe([]string{"cdc", "still", "fresh"})
}

// follows counts the moves of the mirror of cdc on a standby while its slot is
// confirmed a number of times: a measure that a slow machine does not change.
func follows(s *harness.Scene, on *lab.Node) int {
	s.T.Helper()
	const confirmations = 100
	confirmed, moves := 0, 0
	var slot, mirror cluster.LSN
	s.Wait("the slot to move", func() (bool, string) {
		if at := s.Slot(s.A, "cdc").Confirmed; at != slot {
			slot, confirmed = at, confirmed+1
		}
		if at := s.Slot(on, "cdc").Confirmed; at != mirror {
			mirror, moves = at, moves+1
		}
		return confirmed >= confirmations, "it stands still"
	})
	return moves
}
