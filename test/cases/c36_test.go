package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// stalls gives what the last document says of each stalled entry.
func stalls(s *harness.Scene) map[string]string {
	s.T.Helper()
	said := map[string]string{}
	doc, _ := s.Status()
	for _, f := range doc.Conditions {
		if f.Code == plan.CondStandbyGateStalled {
			said[f.Subject] = string(f.Severity) + ": " + f.Message
		}
	}
	return said
}

// gate sets synchronized_standby_slots as an administrator would.
func gate(s *harness.Scene, n *lab.Node, slots ...string) {
	s.T.Helper()
	s.Exec(n, "ALTER SYSTEM SET synchronized_standby_slots = '"+strings.Join(slots, ",")+"'")
	s.OK(n.Reload(s.Ctx))
}

func gateOf(s *harness.Scene, n *lab.Node) string {
	s.T.Helper()
	return s.Text(n, "SELECT current_setting('synchronized_standby_slots')")
}

// held reports whether the consumer of the failover slot gets nothing although
// there is something: the server waits for the listed standbys.
func held(s *harness.Scene, n *lab.Node) bool {
	s.T.Helper()
	err := n.Exec(s.Ctx, "SET statement_timeout = '1s'; SELECT pg_logical_slot_peek_changes('native', NULL, NULL)")
	if err != nil && !strings.Contains(err.Error(), "57014") {
		s.T.Fatal(err)
	}
	return err != nil
}

// C36: entries of synchronized_standby_slots that no standby comes through. Each
// is named with its cause, and each really holds the consumer back.
func TestC36StandbyGateStalls(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Major: harness.ServerSync(t), Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	failoverSlot(s, s.A, "native")
	s.Exec(s.A, "SELECT pg_create_physical_replication_slot('unreserved'), pg_create_physical_replication_slot('inactive', true)")
	gate(s, s.A, s.B.SlotName())
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Run()
	s.Safe([]string{"native"})
	s.Cycles(2)
	if said := stalls(s); len(said) != 0 || held(s, s.A) {
		t.Fatalf("all is well and it says %v", said)
	}
	for _, tc := range []struct{ entry, says string }{
		{"gone", "no such slot"}, {"inactive", "inactive"}, {"unreserved", "no restart_lsn"},
	} {
		if tc.entry == "gone" {
			s.Exec(s.A, "SELECT pg_create_physical_replication_slot('gone', true)")
		}
		gate(s, s.A, s.B.SlotName(), tc.entry)
		if tc.entry == "gone" {
			s.Exec(s.A, "SELECT pg_drop_replication_slot('gone')")
		}
		s.Wait(tc.entry+" to be named", func() (bool, string) {
			said := stalls(s)
			return len(said) == 1 && strings.HasPrefix(said[tc.entry], "critical") && strings.Contains(said[tc.entry], tc.says), fmt.Sprint(said)
		})
		if !held(s, s.A) {
			t.Errorf("the scene is not set: with %s listed the consumer is not held back", tc.entry)
		}
	}
	gate(s, s.A, s.B.SlotName())
	s.NoCondition(plan.CondStandbyGateStalled)

	// A standby that lists the slot through which it streams would wait for itself.
	own := s.B.SlotName()
	s.Exec(s.B, "ALTER SYSTEM SET hot_standby_feedback = on") // any: the file is there then
	s.OK(s.B.Set(s.Ctx, map[string]string{"synchronized_standby_slots": own}))
	s.Wait("the standby's own slot to be named", func() (bool, string) {
		said := stalls(s)
		return strings.Contains(said["b/"+own], "primary_slot_name of b itself"), fmt.Sprint(said)
	})
}

// C36, managed: without the grant the condition says which; with it the list is
// that of the standbys that stream, the last entry stays, and a new primary never
// lists its own.
func TestC36StandbyGateManaged(t *testing.T) {
	t.Parallel()
	settings := harness.Still()
	maps.Copy(settings, map[string]string{"hot_standby_feedback": "on"})
	s := harness.New(t, harness.Options{Major: harness.ServerSync(t), Standbys: 2, Settings: settings})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	failoverSlot(s, s.A, "native")
	s.Run("protection: {synchronized_standby_slots: manage}")
	s.Safe([]string{"native"})

	refused := s.Condition(plan.CondStandbyGateUnmanaged)
	_, grants, found := strings.Cut(refused.Hint, ": ")
	if !found || refused.Subject != "a" {
		t.Fatalf("the condition on %s says: %s", refused.Subject, refused.Hint)
	}
	if gateOf(s, s.A) != "" {
		t.Error("the list is set all the same")
	}
	s.Exec(s.A, grants)
	isGate(s, s.A, s.B, s.C)
	s.NoCondition(plan.CondStandbyGateUnmanaged)
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	if held(s, s.A) {
		t.Error("the consumer is held back although both standbys stream")
	}
	s.OK(s.C.StopFast(s.Ctx))
	isGate(s, s.A, s.B)
	s.OK(s.B.StopFast(s.Ctx))
	s.Wait("the last entry to be told of", func() (bool, string) {
		said := stalls(s)
		return strings.Contains(said[s.B.SlotName()], "inactive"), fmt.Sprint(said)
	})
	s.Cycles(3)
	isGate(s, s.A, s.B)
	s.OK(s.B.Start(s.Ctx))
	s.OK(s.C.Start(s.Ctx))
	isGate(s, s.A, s.B, s.C)
	s.NoCondition(plan.CondStandbyGateStalled)

	s.Safe([]string{"native"})
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.OK(s.C.Follow(s.Ctx, s.B))
	isGate(s, s.B, s.C)
}

// isGate waits until a node lists the slots of exactly these standbys.
func isGate(s *harness.Scene, on *lab.Node, standbys ...*lab.Node) {
	s.T.Helper()
	var want []string
	for _, n := range standbys {
		want = append(want, n.SlotName())
	}
	slices.Sort(want)
	s.Wait(fmt.Sprintf("synchronized_standby_slots on %s to be %v", on.Name(), want), func() (bool, string) {
		got := gateOf(s, on)
		return got == strings.Join(want, ", "), got
	})
}
