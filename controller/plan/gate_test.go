package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func gateWorld(t *testing.T, list ...string) *world {
	t.Helper()
	w := coexisting(t, "b", "c")
	w.servers["a"].node.SynchronizedStandbySlots = list
	w.servers["a"].node.PrimarySlotName = "slot_a"
	for _, s := range []string{"slot_b", "slot_c"} {
		w.servers["a"].slots[s].ActivePID = 100
	}
	return w
}

func stalls(w *world) map[string]string {
	out := map[string]string{}
	for _, c := range w.conditions {
		if c.Code == CondStandbyGateStalled {
			out[c.Subject] = string(c.Severity) + " " + c.Message
		}
	}
	return out
}

// C36.
func TestGateStallsAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name, says string
		do         func(w *world, s *cluster.Slot)
	}{
		{"missing", "no such slot", func(w *world, _ *cluster.Slot) { delete(w.servers["a"].slots, "slot_b") }},
		{"inactive", "inactive", func(_ *world, s *cluster.Slot) { s.ActivePID = 0 }},
		{"no restart_lsn", "no restart_lsn", func(_ *world, s *cluster.Slot) { s.Restart = cluster.None[cluster.LSN]() }},
		{"invalidated", "wal_removed", func(_ *world, s *cluster.Slot) { s.Invalidated = "wal_removed" }},
		{"logical", "logical", func(_ *world, s *cluster.Slot) { s.Kind = cluster.Logical }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := gateWorld(t, "slot_b", "slot_c")
			w.turn()
			if len(stalls(w)) != 0 {
				t.Fatalf("all is well and it says %v", stalls(w))
			}
			tc.do(w, w.servers["a"].slots["slot_b"])
			w.turn()
			said := stalls(w)
			if len(said) != 1 || !strings.HasPrefix(said["slot_b"], "critical") || !strings.Contains(said["slot_b"], tc.says) {
				t.Errorf("it says %v, want %q of slot_b", said, tc.says)
			}
		})
	}
}

func TestGateWithANodesOwnName(t *testing.T) {
	w := gateWorld(t, "slot_a", "slot_b")
	w.servers["b"].node.SynchronizedStandbySlots = []string{"slot_b"}
	w.turn()
	said := stalls(w)
	if len(said) != 2 || !strings.Contains(said["slot_a"], "primary_slot_name of a itself") || !strings.Contains(said["b/slot_b"], "primary_slot_name of b itself") {
		t.Errorf("it says %v", said)
	}
	if kinds(w.plan)["gate/a"] || kinds(w.plan)["gate/b"] {
		t.Error("it is set although it is only to be observed")
	}
	w.policy.ManageStandbySlots = true
	streaming(w, "slot_b", "slot_c")
	w.turns(2)
	if got := w.servers["a"].node.SynchronizedStandbySlots; !sameNames(got, []string{"slot_b", "slot_c"}) {
		t.Errorf("on a: %v", got)
	}
	if got := w.servers["b"].node.SynchronizedStandbySlots; len(got) != 0 {
		t.Errorf("on b: %v", got)
	}
	if len(stalls(w)) != 0 {
		t.Errorf("it says %v", stalls(w))
	}
}

// streaming sets which physical slots of the primary have a walsender that streams.
func streaming(w *world, names ...string) {
	p := w.primary()
	p.walsenders = nil
	for i, name := range names {
		p.slots[name].ActivePID = int32(200 + i)
		p.walsenders = append(p.walsenders, cluster.Walsender{PID: int32(200 + i), State: "streaming", SlotName: name})
	}
}

func TestGateIsKeptToTheLiveCandidates(t *testing.T) {
	w := gateWorld(t)
	w.policy.ManageStandbySlots = true
	streaming(w, "slot_b", "slot_c")
	list := func() []string { return w.servers["a"].node.SynchronizedStandbySlots }
	w.turn()
	if !sameNames(list(), []string{"slot_b", "slot_c"}) {
		t.Fatalf("the list is %v", list())
	}
	w.turn()
	if kinds(w.plan)["gate/a"] {
		t.Error("it is set again")
	}
	w.now = w.now.Add(time.Second)
	w.servers["c"].up, w.servers["a"].slots["slot_c"].ActivePID = false, 0
	streaming(w, "slot_b")
	w.turn()
	if !sameNames(list(), []string{"slot_b"}) {
		t.Fatalf("with c away the list is %v", list())
	}
	w.now = w.now.Add(time.Second)
	w.servers["b"].up, w.servers["a"].slots["slot_b"].ActivePID = false, 0
	streaming(w)
	w.turns(2)
	if !sameNames(list(), []string{"slot_b"}) || !strings.Contains(stalls(w)["slot_b"], "inactive") {
		t.Errorf("with nobody left the list is %v and it says %v", list(), stalls(w))
	}
}

func TestGateThatCannotBeSet(t *testing.T) {
	w := gateWorld(t)
	w.policy.ManageStandbySlots = true
	streaming(w, "slot_b", "slot_c")
	o := w.observe()
	pl := Decide(w.now, w.policy, o, w.memory)
	hint := "GRANT ALTER SYSTEM ON PARAMETER synchronized_standby_slots TO slotkeeper"
	_, _, conds := Settle(w.now, w.policy, o, pl, []StepOutcome{{StepID: "gate/a", Outcomes: []cluster.Outcome{{Code: cluster.CodeNoPrivilege, Detail: "permission denied", Hint: hint}}}})
	for _, c := range conds {
		if c.Code == CondStandbyGateUnmanaged && c.Subject == "a" && c.Hint == hint {
			return
		}
	}
	t.Errorf("conditions %v", conds)
}

func TestGateInAWayThatIsNotKnownIsLeftAlone(t *testing.T) {
	w := gateWorld(t, "ANY 1 (slot_b", "slot_c)")
	w.turn()
	if len(stalls(w)) != 0 {
		t.Errorf("it says %v", stalls(w))
	}
}

// A walsender that still sends what is old does not count: its standby would hold
// all consumers back.
func TestGateWaitsUntilAStandbyStreams(t *testing.T) {
	w := gateWorld(t)
	w.policy.ManageStandbySlots = true
	streaming(w, "slot_b", "slot_c")
	w.servers["a"].walsenders[1].State = "catchup"
	w.turn()
	if got := w.servers["a"].node.SynchronizedStandbySlots; !sameNames(got, []string{"slot_b"}) {
		t.Errorf("the list is %v", got)
	}
}
