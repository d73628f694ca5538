package cases

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// serverSync are settings under which the server's own worker keeps failover
// slots on each node that stands by.
func serverSync() map[string]string {
	settings := harness.Still()
	maps.Copy(settings, map[string]string{"hot_standby_feedback": "on", "sync_replication_slots": "on"})
	return settings
}

func failoverSlot(s *harness.Scene, n *lab.Node, name string) {
	s.T.Helper()
	s.Exec(n, fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'test_decoding', false, false, true)", name))
}

// bothSafe waits until both slots are SAFE on the standby. The server makes a copy
// only once the slot has moved beyond what the standby has, so they are consumed
// meanwhile. A worker that has ended is started again by the postmaster when
// something wakes it, such as a connection.
func bothSafe(s *harness.Scene, primary, standby *lab.Node) {
	s.T.Helper()
	s.Wait("both slots to be SAFE on "+standby.Name(), func() (bool, string) {
		s.Exec(primary, "SELECT pg_log_standby_snapshot()")
		s.Get(primary, "native")
		s.Get(primary, "plain")
		s.Has(standby, "native")
		doc, ok := s.Status()
		if !ok || doc.Primary == nil || doc.Primary.Node != primary.Name() {
			return false, "the controller has not seen the primary"
		}
		said, safe := "", 0
		for _, slot := range []string{"native", "plain"} {
			p, _ := harness.Pair(doc, slot, standby.Name())
			said += fmt.Sprintf("%s is %s %s: %s; ", slot, p.Verdict, p.Reason, p.Message)
			if p.Verdict == plan.Safe {
				safe++
			}
		}
		return safe == 2, said
	})
}

// switchOver stops the primary in order, promotes the standby and has the old
// primary follow it. The server's copy must be where the slot is: the worker of
// 17 ends with an error where its copy, left on a demoted primary, is ahead of
// the promoted one.
func switchOver(s *harness.Scene, primary, standby *lab.Node) {
	s.T.Helper()
	s.Wait("the server's copy to be where the slot is", func() (bool, string) {
		at, want := s.Slot(standby, "native"), s.Slot(primary, "native")
		// Its restart_lsn may be later: the worker finds a place of its own to begin.
		return at.Confirmed == want.Confirmed, "it is at " + at.Confirmed.String()
	})
	s.OK(standby.WaitCatchup(s.Ctx, primary))
	s.OK(primary.StopFast(s.Ctx))
	s.OK(standby.Promote(s.Ctx))
	s.OK(primary.Follow(s.Ctx, standby))
	s.OK(primary.Start(s.Ctx))
}

func inserts(from, upto int) []string {
	var rows []string
	for i := from; i <= upto; i++ {
		rows = append(rows, fmt.Sprintf("table public.t: INSERT: id[integer]:%d", i))
	}
	return rows
}

// C24: one failover slot, which the server's own worker keeps, beside one of ours,
// through two switchovers. Both are SAFE again each time, both decode all that was
// not consumed, and neither gets into the other's way.
func TestC24ServersOwnSlots(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Major: harness.ServerSync(t), Settings: serverSync()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "plain")
	failoverSlot(s, s.A, "native")
	s.Run()
	primary, standby := s.A, s.B
	for round := range 2 {
		bothSafe(s, primary, standby)
		wantKinds(s, standby)
		from, upto := round*100+1, round*100+100
		s.Exec(primary, fmt.Sprintf("INSERT INTO t SELECT generate_series(%d, %d)", from, upto))
		switchOver(s, primary, standby)
		primary, standby = standby, primary
		for _, slot := range []string{"native", "plain"} {
			// What was consumed and not yet copied comes again, before it.
			rows := s.Get(primary, slot)
			s.Same(rows[max(0, len(rows)-100):], inserts(from, upto))
		}
		if s.Text(primary, "SELECT failover FROM pg_replication_slots WHERE slot_name = 'native'") != "true" {
			t.Error("the failover flag is gone after the promotion")
		}
	}
	bothSafe(s, primary, standby)
	wantKinds(s, standby)
	for _, code := range []string{plan.CondSlotRecreated, plan.CondSlotMissing, plan.CondProtectionGap, plan.CondFailoverFlagPending} {
		s.NoCondition(code)
	}
	for _, n := range s.Nodes() {
		quietLog(s, n, 1)
	}
}

// wantKinds wants the server's slot untouched by us, and ours by the server.
func wantKinds(s *harness.Scene, standby *lab.Node) {
	s.T.Helper()
	got := s.Rows(standby, `SELECT format('%s failover %s synced %s %s', name, failover, synced, (marker).kind) FROM slotkeeper.slots() WHERE kind = 'logical' ORDER BY 1`)
	s.Same(got, []string{"native failover t synced t ", "plain failover f synced f mirror"})
}

// quietLog wants a server's log without errors, but for one: a demoted primary's
// worker begins before anybody can connect, meets the original that this node has
// of its reign, and ends; so it may once for each of them.
func quietLog(s *harness.Scene, n *lab.Node, demotions int) {
	s.T.Helper()
	clashes := 0
	for _, line := range strings.Split(n.LogTail(1<<20), "\n") {
		switch {
		case strings.Contains(line, "same name slot"):
			clashes++
		case strings.Contains(line, "could not fetch failover logical slots info"), strings.Contains(line, "could not connect to the primary"):
			// its primary was stopped
		case strings.Contains(line, "ERROR:"), strings.Contains(line, "PANIC:"):
			s.T.Errorf("log of %s: %s", n.Name(), line)
		}
	}
	if clashes > demotions {
		s.T.Errorf("the worker on %s met a slot of the same name %d times, for %d demotions", n.Name(), clashes, demotions)
	}
}
