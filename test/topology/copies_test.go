package topology

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A standby is built again from a base backup, which leaves slots out, and WAL
// from before it: its mirrors are made anew when the slot needs no older WAL.
func TestStandbyRebuiltFromABaseBackup(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	before := s.Slot(s.B, "cdc")
	s.OK(s.B.StopFast(s.Ctx))
	s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonUnreachable)
	s.OK(os.RemoveAll(s.B.DataDir()))
	s.OK(s.B.BaseBackup(s.Ctx, s.A, lab.StandbyOptions{}))
	s.OK(s.B.Start(s.Ctx))
	backup := s.Current(s.A)
	waits := s.Verdict("cdc", s.B, plan.Pending, plan.ReasonWALMissing)
	if !strings.Contains(waits.Message, before.Restart.String()) {
		t.Errorf("%q does not say from where it needs WAL (%s)", waits.Message, before.Restart)
	}
	s.Wait("the slot to need no WAL from before the backup", func() (bool, string) {
		s.Exec(s.A, "INSERT INTO t VALUES (0); CHECKPOINT")
		s.Get(s.A, "cdc")
		at := s.Slot(s.A, "cdc").Restart
		return at > backup, "it needs WAL from " + at.String()
	})
	s.Safe([]string{"cdc"})
	if after := s.Slot(s.B, "cdc"); after.Incarnation == before.Incarnation {
		t.Errorf("the scene is not set: the mirror is still %+v", after)
	}

	s.Reshape(s.A)
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// A standby is cloned by a copy of another's folder, with its mirrors, its hold
// and their marks. The copies are not what the marks speak of: nothing counts
// as proven and nothing is touched, and the verdict says what to do about it.
func TestStandbyClonedWithItsSlots(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.StopDaemon()
	clone, err := s.Lab.NewNode("c")
	s.OK(err)
	s.OK(clone.CopyOf(s.Ctx, s.B))
	s.OK(clone.Follow(s.Ctx, s.A))
	s.OK(clone.Start(s.Ctx))
	s.C = clone
	s.Run()

	s.Safe([]string{"cdc"}, s.B)
	mark := "SELECT coalesce(max((marker).kind), 'none') FROM slotkeeper.slots() WHERE name = '%s'"
	for _, name := range []string{"cdc", cluster.HoldName} {
		if !s.Has(clone, name) || s.Text(clone, fmt.Sprintf(mark, name)) != "none" {
			t.Fatalf("the scene is not set: the clone has no unmarked copy of %s", name)
		}
	}
	for _, name := range []string{"cdc", cluster.HoldName} {
		copied := s.Incarnation(clone, name)
		v := s.Verdict("cdc", clone, plan.Unsafe, plan.ReasonNotOurs)
		drop := fmt.Sprintf("SELECT pg_drop_replication_slot('%s')", name)
		if !strings.Contains(v.Hint, drop) {
			t.Errorf("the hint for the copy of %s is %q (%s)", name, v.Hint, v.Message)
		}
		s.Cycles(2)
		if s.Incarnation(clone, name) != copied {
			t.Errorf("the copy of %s was touched", name)
		}
		s.Exec(clone, drop)
	}
	s.Safe([]string{"cdc"})

	s.Reshape(s.A)
	want := s.Peek(s.A, "cdc")
	s.OK(clone.WaitCatchup(s.Ctx, s.A))
	s.FailOver(clone)
	s.Same(s.Get(clone, "cdc"), want)
}
