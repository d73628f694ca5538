package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// half tells the slots that a consumer must never find after a promotion: no
// marker, no proof, no position, or not on disk.
const half = `SELECT name::text FROM slotkeeper.slots() WHERE kind = 'logical' AND
	((marker).kind IS DISTINCT FROM 'mirror' OR (marker).way IS NULL OR restart_lsn IS NULL OR temporary OR NOT saved)`

// D07: the disk is full when a slot is made, at one point after the other: its
// directory, the marker, the state file that makes it permanent.
func TestD07DiskFull(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	disk := s.FaultyDisk(s.B)
	s.Logical(s.A, "other")
	s.RunEvery(100*time.Millisecond, "")
	s.Safe([]string{"other"})
	for i, file := range []string{"", "/slotkeeper.tmp", "/slotkeeper", "/state.tmp"} {
		name := fmt.Sprintf("cdc%d", i)
		disk.FullFor("/" + name + file)
		s.Logical(s.A, name)
		s.Verdict(name, s.B, plan.Unsafe, plan.ReasonHoldNotSaved)
		s.Safe([]string{"other"})
		s.FreezeDaemon()
		s.Wait("the try under way to end", func() (bool, string) { return !s.Has(s.B, name), "something half made is left" })
		s.ThawDaemon()
		disk.FullFor("")
		s.Safe([]string{"other", name})
		if bad := s.Rows(s.B, half); len(bad) > 0 {
			t.Errorf("with room again %q are half made", bad)
		}
	}
}

// A backend is killed (SIGKILL) while it makes slots, at one point after the
// other of the first one and of the last. At random moments test/fuzz does.
func TestD07Killed(t *testing.T) {
	t.Parallel()
	// Still: a slot that is born while autovacuum changes catalogs is not proven until it moves.
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	disk := s.FaultyDisk(s.B)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.RunEvery(50*time.Millisecond, "")
	var slots []string
	for i, file := range []string{".tmp/state.tmp", "", "/slotkeeper.tmp", "/slotkeeper", "/state.tmp", "/state"} {
		for _, last := range []int{0, 2} {
			if len(slots) > 0 {
				s.Exec(s.A, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'logical'")
			}
			slots = nil
			for j := range 3 {
				slots = append(slots, fmt.Sprintf("r%d_%d_%d", i, last, j))
			}
			pid := disk.HangFor("/"+slots[last]+file, func() { s.Logical(s.A, slots...) })
			s.FreezeDaemon()
			s.Crash(s.B, func() { s.Kill9(pid) })
			if bad := s.Rows(s.B, half); len(bad) > 0 {
				t.Fatalf("a kill at %s%s leaves %q half made", slots[last], file, bad)
			}
			s.ThawDaemon()
			s.Safe(slots)
		}
	}
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10)")
	want := s.Peek(s.A, slots[0])
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	for _, slot := range slots {
		s.Same(s.Get(s.B, slot), want)
	}
}

// D07: a folder stands where a mirror's marker was, and one where a slot is to be
// made. Neither is ours: it is told, left alone, and the others go on; out of the
// way, all is well again.
func TestD07FolderInThePlace(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Logical(s.A, "cdc", "other")
	s.RunEvery(100*time.Millisecond, "")
	s.Safe([]string{"cdc", "other"})
	of := s.Incarnation(s.B, "cdc")
	slots := filepath.Join(s.B.DataDir(), "pg_replslot")
	marker, next := filepath.Join(slots, "cdc", "slotkeeper"), filepath.Join(slots, "next")
	s.FreezeDaemon()
	s.OK(os.Remove(marker))
	s.OK(os.Mkdir(marker, 0o755))
	s.OK(os.Mkdir(next, 0o755))
	s.OK(os.WriteFile(filepath.Join(next, "state"), nil, 0o644))
	s.ThawDaemon()
	s.Logical(s.A, "next")
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonNotOurs)
	told := s.Verdict("next", s.B, plan.Pending, plan.ReasonBusy)
	if !strings.Contains(told.Message, `"pg_replslot/next": Directory not empty`) {
		t.Errorf("what keeps it from being made is not said: %s", told.Message)
	}
	s.Cycles(5)
	s.Safe([]string{"other"})
	if s.Incarnation(s.B, "cdc") != of || s.Has(s.B, "next") {
		t.Error("what is not ours was touched, or something half made is there")
	}

	s.OK(os.RemoveAll(next))
	s.Exec(s.B, "SELECT pg_drop_replication_slot('cdc')") // as the hint says
	s.Safe([]string{"cdc", "next", "other"})
	if bad := s.Rows(s.B, half); len(bad) > 0 {
		t.Errorf("%q are half made", bad)
	}
}
