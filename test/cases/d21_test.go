package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// leaders are those that may be asked to judge: who has seen everything, a
// successor who knows what the ledger says, and one who knows nothing at all.
var leaders = map[string]func(s *harness.Scene, more ...string){
	"the same leader": func(s *harness.Scene, _ ...string) { s.ThawDaemon() },
	"a new leader": func(s *harness.Scene, more ...string) {
		s.ThawDaemon()
		s.KillDaemon()
		s.Run(more...)
	},
	"a leader that remembers nothing": func(s *harness.Scene, more ...string) {
		s.ThawDaemon()
		s.KillDaemon()
		s.ForgetAll()
		s.Run(more...)
	},
}

// A mirror of a standby that was given up must go, whoever judges it.
const briefly = "protection: {max_hold_age: 1s}"

// D21: a false witness. A standby is given up and its rows go. It returns, and
// through its feedback a newborn slot pins what its mirror needs: as if nothing
// had happened.
func TestD21NewbornSlotIsNoWitness(t *testing.T) {
	t.Parallel()
	for name, judge := range leaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newbornWitness(t, harness.Options{OnB: withFeedback()}, "test_decoding", judge, outlived)
		})
	}
}

// D21 on standbys that get their WAL late or from another standby, with feedback:
// without it nothing pins for the newborn slot what is gone.
func TestD21NewbornSlotOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	judge := leaders["a leader that remembers nothing"]
	each(t, map[string]harness.Options{"delayed": delayedWithFeedback, "cascading": cascadingWithFeedback}, func(t *testing.T, o harness.Options) {
		newbornWitness(t, o, "test_decoding", judge, outlived)
	})
}

func outlived(s *harness.Scene) {
	s.T.Helper()
	s.Reshape(s.A)
	s.Pass(s.A, "cdc")
}

// D21 with pgoutput, which would send nothing of what was published, and no error:
// the table has left its publication.
func TestD21TableLeavesThePublication(t *testing.T) {
	t.Parallel()
	newbornWitness(t, harness.Options{OnB: withFeedback()}, "pgoutput", leaders["the same leader"], func(s *harness.Scene) {
		s.Exec(s.A, "INSERT INTO t VALUES (1), (2)")
		s.Exec(s.A, "ALTER PUBLICATION p DROP TABLE t")
		s.Skip(s.A, "cdc")
	})
}

func newbornWitness(t *testing.T, o harness.Options, plugin string, judge func(*harness.Scene, ...string), change func(s *harness.Scene)) {
	o.Settings = harness.Still()
	s := harness.New(t, o)
	last, upstream := last(s), s.A
	if o.Cascade {
		upstream = s.B
	}
	s.Exec(s.A, "CREATE TABLE t (id int); CREATE PUBLICATION p FOR TABLE t")
	s.Exec(s.A, fmt.Sprintf("SELECT pg_create_logical_replication_slot('cdc', '%s')", plugin))
	s.Run(briefly)
	s.Safe([]string{"cdc"})
	old := s.Slot(last, "cdc")
	s.Shut(last)
	s.OK(last.StopFast(s.Ctx))
	s.Wait("its walsender to end", func() (bool, string) {
		active := s.Text(upstream, "SELECT active FROM pg_replication_slots WHERE slot_name = '"+last.SlotName()+"'")
		return active == "false", "it is there"
	})
	s.Exec(upstream, fmt.Sprintf("SELECT pg_drop_replication_slot('%s')", last.SlotName()))
	change(s)
	s.Condition(plan.CondHoldAge)
	pins := []string{cluster.HoldName}
	if o.Cascade {
		pins = append(pins, s.B.SlotName()) // by feedback, which follows
	}
	for _, slot := range pins {
		s.Wait(slot+" to let go", func() (bool, string) {
			at := s.Pins(s.A, slot)
			return !at.Precedes(s.Pins(s.A, "cdc")), fmt.Sprintf("it pins from %d", at)
		})
	}
	s.VacuumCatalogs(s.A)

	s.Exec(upstream, fmt.Sprintf("SELECT pg_create_physical_replication_slot('%s', true)", last.SlotName()))
	s.OK(last.Start(s.Ctx))
	s.Wait("its feedback to pin what is gone", func() (bool, string) {
		at := s.Pins(upstream, last.SlotName())
		return at == old.CatalogXmin, fmt.Sprintf("it pins from %d", at)
	})
	if o.Cascade {
		// A walsender takes its slot back only from nothing.
		s.OK(s.B.Set(s.Ctx, map[string]string{"hot_standby_feedback": "off"}))
		s.FeedbackPins(s.B, false)
		s.OK(s.B.Set(s.Ctx, map[string]string{"hot_standby_feedback": "on"}))
		s.FeedbackPins(s.B, true)
	}
	s.Logical(s.A, "born")
	if at := s.Pins(s.A, "born"); at != old.CatalogXmin {
		t.Errorf("the scene is not set: the newborn slot pins from %d, the mirror needs %d", at, old.CatalogXmin)
	}
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.Wait("the hold to be lowered for the newborn slot", func() (bool, string) {
		at := s.Pins(s.A, "slotkeeper_hold")
		return at == old.CatalogXmin, fmt.Sprintf("it pins from %d", at)
	})
	s.FreezeDaemon()
	s.Open(last)
	judge(s, briefly)
	rowsGone(s)
	s.Safe([]string{"cdc", "born"})
	if s.Incarnation(last, "cdc") == old.Incarnation {
		t.Error("the mirror whose rows are gone is still there")
	}
}

// The hold is dropped on the primary, rows go, and a new hold is made, while the
// controller cannot reach one standby. The primary dies: that standby's own hold
// was set in recovery and still says what it said.
func TestD21HoldSetInRecoveryIsNoWitness(t *testing.T) {
	t.Parallel()
	for name, judge := range leaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holdSetInRecovery(t, harness.Options{Standbys: 2}, judge)
		})
	}
}

// The same on standbys that get their WAL late or from another standby, without
// feedback: with it the physical slot keeps the rows, and nothing is gone.
func TestD21HoldSetInRecoveryOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	judge := leaders["a leader that remembers nothing"]
	two := delayed
	two.Standbys = 2
	each(t, map[string]harness.Options{"delayed": two, "cascading": cascading}, func(t *testing.T, o harness.Options) {
		holdSetInRecovery(t, o, judge)
	})
}

func holdSetInRecovery(t *testing.T, o harness.Options, judge func(*harness.Scene, ...string)) {
	o.Settings = harness.Still()
	s := harness.Mirrored(t, o)
	last := last(s)
	s.Shut(last)
	s.FreezeDaemon()
	s.Exec(s.A, dropHold)
	s.Outdate(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.ThawDaemon()
	s.Logged("hold_missing")
	s.Safe([]string{"cdc"}, s.B)
	s.FreezeDaemon()
	if mine, others := s.Generation(last, "cdc"), s.Generation(s.B, "cdc"); mine == 0 || mine >= others {
		t.Errorf("the scene is not set: the mirror on %s is of generation %d, that on b of %d", last.Name(), mine, others)
	}

	s.FailOver(last)
	s.Open(last)
	judge(s)
	s.Wait("the unproven slot to go", func() (bool, string) { return !s.Has(last, "cdc"), "it is still there" })
	if missing := s.Condition(plan.CondSlotMissing); missing.Subject != "cdc" {
		t.Errorf("it is said of %s that it is missing", missing.Subject)
	}
	s.Cycles(3)
	err := last.Exec(s.Ctx, "SELECT pg_logical_slot_get_changes('cdc', NULL, NULL)")
	if err == nil || !strings.Contains(err.Error(), `replication slot "cdc" does not exist`) {
		t.Errorf("the consumer is told %v", err)
	}
}
