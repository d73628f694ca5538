package cases

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// The controller would look every hour only, longer than this test may last. What
// moves wakes it: a slot of the primary, one that is made, replay that a mirror waits
// for. While nothing moves it sleeps.
func TestWhatMovesWakesTheController(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	s.Still(s.A)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.RunEvery(time.Hour, "")
	made := func(slot string) {
		t.Helper()
		for _, n := range []*lab.Node{s.B, s.C} {
			s.Wait("a mirror of "+slot+" on "+n.Name(), func() (bool, string) { return s.Has(n, slot), "there is none" })
		}
	}
	follow := func(on ...*lab.Node) {
		t.Helper()
		want := s.Slot(s.A, "cdc").Confirmed
		for _, n := range on {
			s.Wait("the mirror on "+n.Name()+" to follow", func() (bool, string) {
				at := s.Slot(n, "cdc").Confirmed
				return at == want, "it is at " + at.String() + ", the slot at " + want.String()
			})
		}
	}
	made("cdc")
	for range 3 {
		s.Exec(s.A, "INSERT INTO t VALUES (1)")
		s.Get(s.A, "cdc")
		follow(s.B, s.C)
	}
	s.Exec(s.B, "SELECT pg_wal_replay_pause()")
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	follow(s.C)
	s.Exec(s.B, "SELECT pg_wal_replay_resume()")
	follow(s.B)
	s.Logical(s.A, "fresh")
	made("fresh")

	cycle := func() uint64 {
		doc, _ := s.Status()
		return doc.Cycle
	}
	last, since := cycle(), time.Now()
	s.Wait("the controller to sleep for some seconds", func() (bool, string) {
		if now := cycle(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Second, "one cycle follows another while nothing moves"
	})
}
