package cases

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
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

// A backend is killed (SIGKILL) while it makes slots, twenty times.
func TestD07Killed(t *testing.T) {
	t.Parallel()
	// Still: a slot that is born while autovacuum changes catalogs is not proven until it moves.
	settings := harness.Still()
	settings["max_replication_slots"] = "50"
	s := harness.New(t, harness.Options{Settings: settings})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.RunEvery(50*time.Millisecond, "")
	hit, slots := 0, []string{}
	window := 1500 * time.Microsecond // follows how fast this machine makes them
	for round := range 20 {
		slots = slots[:0]
		for i := range 6 {
			slots = append(slots, fmt.Sprintf("r%d_%d", round, i))
		}
		s.Wait("the controller on b", func() (bool, string) { return s.HasWorkers(s.B), "it has no session" })
		s.FreezeDaemon()
		s.Logical(s.A, slots...)
		s.OK(s.B.WaitCatchup(s.Ctx, s.A))
		watcher := s.Session(s.B) // before: the kill shall not wait for one to begin
		s.Crash(s.B, func() {
			s.ThawDaemon()
			s.Appears(filepath.Join(s.B.DataDir(), "pg_replslot", slots[rand.IntN(len(slots))]))
			time.Sleep(rand.N(window)) // somewhere in the making
			watcher.KillWorkers()
			s.FreezeDaemon()
		})
		if bad := s.Rows(s.B, half); len(bad) > 0 {
			t.Fatalf("kill %d leaves %q half made", round, bad)
		}
		if there := s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical'"); !containsAll(there, slots) {
			hit++
			window = window * 5 / 4
		} else {
			window = window / 2
		}
		s.ThawDaemon()
		s.Safe(slots)
		if round < 19 {
			s.Exec(s.A, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'logical'")
		}
	}
	if hit < 5 {
		t.Errorf("the scene is not set: only %d of 20 kills came before all slots were made", hit)
	}
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10)")
	want := s.Peek(s.A, slots[0])
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	for _, slot := range slots {
		s.Same(s.Get(s.B, slot), want)
	}
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}
