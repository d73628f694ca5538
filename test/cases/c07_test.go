package cases

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C07: a standby with recovery_min_apply_delay=10s follows ten seconds behind
// a slot that never stands still, and is SAFE all the time; the standby beside it
// follows at once.
func TestC07DelayedStandbyFollows(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2})
	s.Delay(s.B, 10*time.Second)
	defer s.Busy(s.A, "cdc")()

	// A position that the slot had under the delay; and all reads of the slot
	// since then are newer than what the standby replays.
	began := s.Slot(s.B, "cdc").Confirmed
	late := began
	s.Wait("the slot to move", func() (bool, string) {
		late = s.Slot(s.A, "cdc").Confirmed
		return late > began, "it is at " + late.String()
	})
	s.Wait("the mirror on b to follow", func() (bool, string) {
		at := s.NotBeyondReplay(s.B, "cdc")
		for _, on := range []*lab.Node{s.B, s.C} {
			if p := s.Now("cdc", on); p.Verdict != plan.Safe {
				t.Fatalf("on %s it is %s %s: %s", on.Name(), p.Verdict, p.Reason, p.Message)
			}
		}
		return at > late, "it is at " + at.String()
	})
	if p := s.Now("cdc", s.B); p.LagBytes.V <= s.Now("cdc", s.C).LagBytes.V {
		t.Errorf("the mirror on b is %d bytes behind, not further than that on c", p.LagBytes.V)
	}
	s.NoComplaints(plan.CondFeedbackOff, plan.CondLag)
}

var bytesBehind = regexp.MustCompile(`\([1-9][0-9]* bytes behind\)`)

// C07: a delay of ten minutes, a pause, and a walreceiver that stands still. The
// mirrors wait where they are and stay SAFE; what is new says what it waits for.
// Nothing of it is lost at a promotion.
func TestC07LongDelayAndPause(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2})
	s.Delay(s.B, 10*time.Minute)
	s.Exec(s.C, "SELECT pg_wal_replay_pause()")
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10)")
	s.Get(s.A, "cdc")
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(11, 30)")
	s.Logical(s.A, "fresh")
	s.Received(s.B)
	s.Received(s.C)

	for _, on := range []*lab.Node{s.B, s.C} {
		fresh := s.Verdict("fresh", on, plan.Pending, plan.ReasonReplayLag)
		s.Safe([]string{"cdc"}, on)
		if at := s.NotBeyondReplay(on, "cdc"); at >= s.Slot(s.A, "cdc").Confirmed {
			t.Fatalf("the scene is not set: %s has replayed all", on.Name())
		}
		if p := s.Now("cdc", on); p.LagBytes.V <= 0 {
			t.Errorf("%s shows a lag of %d bytes", on.Name(), p.LagBytes.V)
		}
		if !bytesBehind.MatchString(fresh.Message) || fresh.Hint == "" {
			t.Errorf("on %s: %q, hint %q", on.Name(), fresh.Message, fresh.Hint)
		}
	}

	// What b has not even received is another matter than what it has not replayed.
	s.OK(syscall.Kill(s.Background(s.B, "walreceiver"), syscall.SIGSTOP))
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(31, 40)")
	s.Logical(s.A, "far")
	far := s.Verdict("far", s.B, plan.Pending, plan.ReasonReceiveLag)
	if !bytesBehind.MatchString(far.Message) {
		t.Errorf("on b: %q", far.Message)
	}
	s.Verdict("far", s.C, plan.Pending, plan.ReasonReplayLag)
	s.Cycles(3)
	s.NoComplaints(plan.CondFeedbackOff, plan.CondNoSafeCandidate)

	s.FailOver(s.C)
	if rows := s.Get(s.C, "cdc"); len(rows) < 30 || len(rows) > 40 {
		t.Errorf("%d rows came: %q", len(rows), rows)
	}
	if s.Has(s.C, "fresh") || s.Has(s.C, "far") {
		t.Error("a slot that nothing had proven is there after the promotion")
	}
}

// A busy primary never starves a mirror: the newest read is never one that the
// standby has replayed, and yet each mirror moves on.
func TestBusyPrimaryNeverStarvesAMirror(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	slots := []string{"one", "two", "three"}
	s.Logical(s.A, slots...)
	s.RunEvery(100*time.Millisecond, "")
	s.Safe(slots)
	s.Delay(s.B, time.Second)
	defer s.Busy(s.A, slots...)()
	for range 3 {
		marks := map[string]cluster.LSN{}
		for _, slot := range slots {
			marks[slot] = s.Slot(s.A, slot).Confirmed
		}
		for _, slot := range slots {
			s.Wait("the mirror of "+slot+" to move", func() (bool, string) {
				if p := s.Now(slot, s.B); p.Verdict != plan.Safe {
					t.Fatalf("%s is %s %s: %s", slot, p.Verdict, p.Reason, p.Message)
				}
				at := s.NotBeyondReplay(s.B, slot)
				return at > marks[slot], "it is at " + at.String()
			})
		}
	}
}
