package cases

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// invalidated is a mirror on b that the server gives up for a reason while the
// controller is frozen. It must be found LOST by that reason at first sight, and
// another one be made then, once, from which all comes after a failover; the slot on a
// and both servers must be as they were.
type invalidated struct {
	*harness.Scene
	reason       plan.Reason
	mirror, slot string   // their directories
	started      []string // when the servers were
}

func beforeInvalidation(s *harness.Scene, reason plan.Reason) *invalidated {
	s.T.Helper()
	v := &invalidated{Scene: s, reason: reason, mirror: s.Incarnation(s.B, "cdc"), slot: s.Incarnation(s.A, "cdc")}
	v.started = v.starts()
	s.FreezeAtRest()
	return v
}

func (v *invalidated) starts() []string {
	v.T.Helper()
	var all []string
	for _, n := range v.Nodes() {
		all = append(all, v.Text(n, "SELECT pg_postmaster_start_time()"))
	}
	return all
}

// by waits until the server has invalidated the mirror.
func (v *invalidated) by(checkpoints bool) {
	v.T.Helper()
	v.Wait("the mirror to be invalidated: "+string(v.reason), func() (bool, string) {
		if checkpoints {
			restartpoint(v.Scene)
		}
		why := v.Text(v.B, "SELECT invalidated FROM slotkeeper.slots() WHERE name = 'cdc'")
		return why == string(v.reason), why
	})
}

// judged wants what the controller makes of it when it looks again.
func (v *invalidated) judged() {
	v.T.Helper()
	v.ThawDaemon()
	v.Safe([]string{"cdc"})
	now := v.Incarnation(v.B, "cdc")
	v.Cycles(3)
	var verdicts []string // the first one is SAFE
	for _, line := range v.Log() {
		if line["@message"] == "verdict" && line["slot"] == "cdc" {
			verdicts = append(verdicts, fmt.Sprint(line["verdict"], " ", line["reason"]))
		}
	}
	// Whoever was frozen has lost its lease, and may find it LOST before it knows.
	if lost := fmt.Sprint(plan.Lost, " ", v.reason); len(verdicts) < 2 || verdicts[1] != lost {
		v.T.Errorf("the verdicts were %q, want %s at first sight", verdicts, lost)
	}
	if now == v.mirror || v.Incarnation(v.B, "cdc") != now {
		v.T.Error("the mirror was not made anew, once")
	}
	if v.Incarnation(v.A, "cdc") != v.slot {
		v.T.Error("the slot on the primary is another one")
	}
}

// decodes fails over and wants from the mirror what the slot would have sent.
func (v *invalidated) decodes() {
	v.T.Helper()
	v.Exec(v.A, "INSERT INTO t SELECT FROM generate_series(1, 10)")
	want := v.Peek(v.A, "cdc")
	v.OK(v.B.WaitCatchup(v.Ctx, v.A))
	if !slices.Equal(v.starts(), v.started) {
		v.T.Error("a server was restarted")
	}
	v.FailOver(v.B)
	v.Same(v.Get(v.B, "cdc"), want)
}

// C05: with the hold in place VACUUM never invalidates a mirror; once the hold is
// dropped it does, from 16 on.
func TestC05RowsRemoved(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Major: max(harness.Major(t), 17), Settings: harness.Still(), Lasts: 8 * time.Minute})
	v := beforeInvalidation(s, plan.ReasonRowsRemoved)
	s.Outdate(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	if why := s.Text(s.B, "SELECT invalidated FROM slotkeeper.slots() WHERE name = 'cdc'"); why != "" {
		t.Fatalf("with the hold in place the mirror is invalidated: %s", why)
	}
	s.Exec(s.A, dropHold)
	s.VacuumCatalogs(s.A)
	v.by(false)
	v.judged()
	v.decodes()
}

// C05: on each major the server gives up a mirror for the WAL that it keeps.
func TestC05WALRemoved(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{
		Settings: settings(harness.Still(), harness.SmallWAL()),
		OnB:      lab.StandbyOptions{Settings: map[string]string{"max_slot_wal_keep_size": "32MB"}},
	})
	v := beforeInvalidation(s, plan.ReasonWALRemoved)
	s.FillWAL(s.A, 6, "cdc")
	v.by(true)
	s.Get(s.A, "cdc") // the new mirror needs WAL that is there
	v.judged()
	v.decodes()
}

// C05: wal_level goes below logical on the primary while it has no logical slot,
// and comes back. What stood on the standby is LOST; the slot of that name that is
// made then is mirrored.
func TestC05WALLevelInsufficient(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Major: max(harness.Major(t), 17), Settings: harness.Still(), Lasts: 8 * time.Minute})
	v := beforeInvalidation(s, plan.ReasonWalLevelInsufficient)
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	for _, level := range []string{"replica", "logical"} {
		s.OK(s.A.Set(s.Ctx, map[string]string{"wal_level": level}))
		s.OK(s.A.Restart(s.Ctx))
		s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	}
	v.by(false)
	s.Logical(s.A, "cdc")
	v.slot, v.started[0] = s.Incarnation(s.A, "cdc"), v.starts()[0]
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	v.judged()
	v.decodes()
}

// C05: from 18 on a slot that nobody has in hand is given up after a while.
func TestC05IdleTimeout(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{
		Major: max(harness.Major(t), 18), Settings: harness.Still(),
		OnB: lab.StandbyOptions{Settings: map[string]string{"idle_replication_slot_timeout": "3s"}},
	})
	v := beforeInvalidation(s, plan.ReasonIdleTimeout)
	v.by(true)
	s.OK(s.B.Set(s.Ctx, map[string]string{"idle_replication_slot_timeout": "0"}))
	v.judged()
	v.decodes()
}

func settings(all ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, one := range all {
		maps.Copy(merged, one)
	}
	return merged
}
