package cases

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D22: a disk is full once. What the failed save leaves, state.tmp, lets no save of
// the server's own come through until it is restarted, while its memory shows the
// new value. The hold that a new slot needs counts as held only when its
// file says so: no mirror before that, and after that a crash of the primary, which
// forgets what was only in its memory, takes no row.
func TestD22DiskFullOnceForTheHold(t *testing.T) {
	t.Parallel()
	diskFullOnceForTheHold(t, harness.Options{Lasts: 8 * time.Minute})
}

// D22 on standbys that get their WAL late or from another standby. Feedback has
// passed what the new slot begins with, and never takes it back: it is on in one
// scene of each test only.
func TestD22HoldOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, map[string]harness.Options{"delayed": delayed, "cascading, with feedback": cascadingWithFeedback}, diskFullOnceForTheHold)
}

func diskFullOnceForTheHold(t *testing.T, o harness.Options) {
	o.Settings = harness.Still()
	s := harness.New(t, o)
	last := last(s)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	// What lagging pins is held for nobody, and a new slot begins with it.
	s.Logical(s.A, "lagging", "cdc")
	s.Exec(s.A, "CREATE TABLE passing (); DROP TABLE passing")
	s.Pass(s.A, "cdc")
	disk := s.FaultyDisk(s.A)
	s.Run("slots: {exclude: [{name: lagging}]}")
	s.Safe([]string{"cdc"})
	if !s.Pins(s.A, "lagging").Precedes(s.Pins(s.A, cluster.HoldName)) {
		t.Fatalf("the scene is not set: the hold pins from %s, lagging from %s", s.Pins(s.A, cluster.HoldName), s.Pins(s.A, "lagging"))
	}

	if o.OnB.Feedback {
		s.Wait("feedback to pass lagging", func() (bool, string) {
			at := s.Pins(s.A, s.B.SlotName())
			return s.Pins(s.A, "lagging").Precedes(at), "it pins from " + at.String()
		})
	}

	disk.FullFor(cluster.HoldName + "/state.tmp")
	s.Logical(s.A, "fresh")
	s.Verdict("fresh", last, plan.Unsafe, plan.ReasonHoldNotSaved)
	s.Cycles(3)
	if s.Has(last, "fresh") {
		t.Error("there is a mirror for which nothing is held")
	}
	s.FreezeDaemon()
	disk.FullFor("")
	blocked(s, s.A, cluster.HoldName)
	if at, needed := s.Pins(s.A, cluster.HoldName), s.Pins(s.A, "fresh"); at != needed || saved(s, s.A, cluster.HoldName) {
		t.Errorf("the scene is not set: the hold pins from %s, saved: %t; fresh needs %s", at, saved(s, s.A, cluster.HoldName), needed)
	}
	s.ThawDaemon()
	s.Safe([]string{"cdc", "fresh"})
	s.FreezeDaemon()
	if !saved(s, s.A, cluster.HoldName) {
		t.Error("fresh is SAFE, and the file does not say what holds its rows")
	}

	// From here on the file alone keeps what the mirror needs.
	s.Reshape(s.A)
	want := s.Peek(s.A, "fresh")
	s.Exec(s.A, "SELECT pg_drop_replication_slot('lagging')")
	s.Pass(s.A, "cdc")
	s.Pass(s.A, "fresh")
	s.Exec(s.A, "CHECKPOINT") // or the crash takes the slots back
	s.CrashBackend(s.A)
	s.OK(s.B.WaitStreaming(s.Ctx))
	s.VacuumCatalogs(s.A)
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.FailOver(last)
	s.Same(s.Get(last, "fresh"), want)
}

// D22 on a standby: the mirror whose save failed stays where its file is, and moves
// on as soon as there is room.
func TestD22DiskFullOnceForAMirror(t *testing.T) {
	t.Parallel()
	diskFullOnceForAMirror(t, harness.Options{})
}

func TestD22MirrorOnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, map[string]harness.Options{"delayed, with feedback": delayedWithFeedback, "cascading": cascading}, diskFullOnceForAMirror)
}

func diskFullOnceForAMirror(t *testing.T, o harness.Options) {
	o.Settings = harness.Still()
	s := harness.New(t, o)
	last := last(s)
	disk := s.FaultyDisk(last)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})
	before := s.Slot(last, "cdc")

	disk.FullFor("cdc/state.tmp")
	s.Reshape(s.A)
	s.Pass(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.Verdict("cdc", last, plan.Unsafe, plan.ReasonHoldNotSaved)
	s.FreezeDaemon()
	disk.FullFor("")
	blocked(s, last, "cdc")
	if now := s.Slot(last, "cdc"); now.Position != before.Position {
		t.Errorf("the mirror went from %v to %v, which its file does not say", before.Position, now.Position)
	}
	s.ThawDaemon()
	s.Safe([]string{"cdc"})
	if now := s.Slot(last, "cdc"); now.Incarnation != before.Incarnation || now.Restart <= before.Restart {
		t.Errorf("the mirror was %v and is %v: it has not moved on", before, now)
	}
	if !saved(s, last, "cdc") {
		t.Error("memory and file differ")
	}
	s.StopDaemon()
	s.Exec(s.A, "INSERT INTO t SELECT 'c' || i FROM generate_series(1, 10) i")
	want := s.Peek(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.FailOver(last)
	s.Same(s.Get(last, "cdc"), want)
}

// blocked sees to it that a failed save has left state.tmp, which 13.16 leaves and
// 15.20, 17.12 and 18.6 remove, and that no save of the server's own comes through:
// a checkpoint only logs that.
func blocked(s *harness.Scene, n *lab.Node, slot string) {
	s.T.Helper()
	s.LeftBehind(statefile(n, slot))
	complaint := "could not create file \"pg_replslot/" + slot + "/state.tmp\": File exists"
	s.Wait("a checkpoint that only logs", func() (bool, string) {
		s.Exec(s.A, "CHECKPOINT")
		s.OK(last(s).WaitCatchup(s.Ctx, s.A))
		s.Exec(last(s), "CHECKPOINT")
		return strings.Contains(n.LogTail(1<<20), complaint), "it has not"
	})
}

// saved reports whether memory and file of a slot say the same.
func saved(s *harness.Scene, n *lab.Node, slot string) bool {
	s.T.Helper()
	return s.Text(n, "SELECT saved FROM slotkeeper.slots() WHERE name = '"+slot+"'") == "true"
}
