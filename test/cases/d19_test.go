package cases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// statefile is what a server writes a slot's state into before it counts.
func statefile(n *lab.Node, slot string) string {
	return filepath.Join(n.DataDir(), "pg_replslot", slot, "state.tmp")
}

// D19: what stands at state.tmp and cannot be taken away, a folder, lets no save of
// a slot come through; a checkpoint only logs that. Nothing counts as moved or held
// by memory alone: the mirror stays where its file is, and so do the holds.
func TestD19SavesThatFailInSilence(t *testing.T) {
	t.Parallel()
	savesFailInSilence(t, harness.Options{Lasts: 8 * time.Minute})
}

// D19 on standbys that get their WAL late or from another standby. Feedback has no
// say in what a save does: it is on in one scene only.
func TestD19OnDelayedAndCascadingStandbys(t *testing.T) {
	t.Parallel()
	each(t, map[string]harness.Options{"delayed": delayed, "cascading, with feedback": cascadingWithFeedback}, savesFailInSilence)
}

func savesFailInSilence(t *testing.T, o harness.Options) {
	o.Settings = harness.Still()
	s := harness.Mirrored(t, o)
	last := last(s)
	before := s.Slot(last, "cdc")
	var blocked []string
	for _, n := range s.Nodes() {
		blocked = append(blocked, statefile(n, cluster.HoldName))
	}
	for _, n := range s.Nodes()[1:] {
		blocked = append(blocked, statefile(n, "cdc"))
	}
	for _, path := range blocked {
		s.OK(os.Mkdir(path, 0o700))
	}
	want := s.Outdate(s.A, "cdc")
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	s.Verdict("cdc", last, plan.Unsafe, plan.ReasonHoldNotSaved)
	s.Cycles(3)
	s.Wait("a restartpoint that only logs", func() (bool, string) {
		s.Exec(s.A, "CHECKPOINT")
		s.OK(last.WaitCatchup(s.Ctx, s.A))
		s.Exec(last, "CHECKPOINT")
		return strings.Contains(last.LogTail(1<<20), "LOG:  could not create file \"pg_replslot/cdc/state.tmp\""), "it has not"
	})
	s.FreezeDaemon()
	s.VacuumCatalogs(s.A)
	s.OK(last.WaitCatchup(s.Ctx, s.A))
	if now := s.Slot(last, "cdc"); now.Position != before.Position {
		t.Errorf("the mirror went from %v to %v, which its file does not say", before, now)
	}
	for _, n := range s.Nodes() {
		if at := s.Pins(n, cluster.HoldName); !at.NotAfter(before.CatalogXmin) {
			t.Errorf("the hold on %s pins from %s, the mirror needs %s", n.Name(), at, before.CatalogXmin)
		}
	}
	if unsaved := s.Rows(last, "SELECT name::text FROM slotkeeper.slots() WHERE marker IS NOT NULL AND NOT saved"); len(unsaved) > 0 {
		t.Errorf("memory and file differ for %q", unsaved)
	}
	s.FailOver(last)
	for _, path := range blocked[1:] {
		s.OK(os.Remove(path)) // or no consumer could go on, whatever it is sent
	}
	s.Same(s.Get(last, "cdc"), want)
}
