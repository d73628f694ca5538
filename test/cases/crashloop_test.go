package cases

import (
	"fmt"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A primary crashes and starts again and again, and then for good. Nothing is
// withdrawn while it is away, and nothing on its account when it is there for a
// moment: the mirrors are for that hour.
func TestCrashLoopingPrimaryCostsNobodyASlot(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	slots := []string{"cdc", "idle"}
	s.Logical(s.A, slots...)
	s.Run()
	s.Safe(slots)
	before := map[string]string{}
	standbys := []*lab.Node{s.B, s.C}
	for _, slot := range slots {
		for _, n := range standbys {
			before[slot+n.Name()] = s.Incarnation(n, slot)
		}
	}
	for i := range 5 {
		s.Exec(s.A, fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
		s.Get(s.A, "cdc")
		s.OK(s.A.StopImmediate(s.Ctx))
		if i%2 == 0 {
			s.Condition(plan.CondNoLeader) // the controller has seen that it is away
		}
		s.OK(s.A.Start(s.Ctx))
	}
	s.Exec(s.A, "INSERT INTO t VALUES (100)")
	s.Get(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(101, 110)")
	want := s.Peek(s.A, "cdc")
	s.Level()
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.OK(s.A.StopImmediate(s.Ctx))
	s.Condition(plan.CondNoLeader)
	for _, slot := range slots {
		for _, n := range standbys {
			if now := s.Incarnation(n, slot); now != before[slot+n.Name()] {
				t.Errorf("the mirror of %s on %s is another one", slot, n.Name())
			}
			for _, state := range []plan.State{plan.Unsafe, plan.Pending, plan.Lost} {
				for _, line := range s.Log() {
					if line["@message"] == "verdict" && line["slot"] == slot && line["node"] == n.Name() && line["verdict"] == string(state) && line["was"] != "" {
						t.Errorf("it was called %v %v: %v", line["verdict"], line["reason"], line["message"])
					}
				}
			}
		}
	}
	s.OK(s.B.Promote(s.Ctx))
	s.Leads(s.B)
	s.Behind(s.C)
	s.Safe(slots, s.C)
	s.Same(s.Get(s.A, "cdc"), want)
}
