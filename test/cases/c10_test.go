package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C10: the primary goes backward. confirmed_flush_lsn is not saved at each
// move, so a crash takes it back behind the mirror. The mirror waits; nothing is
// dropped, made anew or written, until the consumer is there again.
func TestC10PrimaryGoesBackward(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.Exec(s.A, "CHECKPOINT")
	s.Get(s.A, "cdc")
	s.Still(s.A)
	s.RunEvery(0, "")
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc") // confirmed, and not saved
	mirror := s.Mirrored("cdc", s.B)

	s.OK(s.A.StopImmediate(s.Ctx))
	s.OK(s.A.Start(s.Ctx))
	if at := s.Slot(s.A, "cdc"); at.Confirmed >= mirror.Confirmed {
		t.Fatalf("the scene is not set: the primary is at %s, the mirror at %s", at.Confirmed, mirror.Confirmed)
	}
	s.Condition(plan.CondPrimaryBehindMirror)
	s.Cycles(3)
	doc := s.Safe([]string{"cdc"}, s.B)
	if at := s.Slot(s.B, "cdc"); at != mirror {
		t.Errorf("the mirror went from %+v to %+v", mirror, at)
	}
	s.Condition(plan.CondPrimaryBehindMirror)

	s.Exec(s.A, "INSERT INTO t VALUES (2)")
	s.Get(s.A, "cdc")
	s.NoCondition(plan.CondPrimaryBehindMirror)
	after := s.Mirrored("cdc", s.B)
	if after.Incarnation != mirror.Incarnation || after.Confirmed <= mirror.Confirmed {
		t.Errorf("the mirror went from %+v to %+v, want the same one further on", mirror, after)
	}
	if now := s.Safe([]string{"cdc"}, s.B); now.Leader != doc.Leader {
		t.Errorf("the leader went from %+v to %+v", doc.Leader, now.Leader)
	}
}
