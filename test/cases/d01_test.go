package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D01: a slot is created beside one that is mirrored every 20 ms, while three
// transactions are always open, and stays idle. It is SAFE in two cycles.
func TestD01NewSlotBesideBusy(t *testing.T) {
	t.Parallel()
	newSlotBesideBusy(t, false)
}

// D01 with a slot that lags and that nobody mirrors: the new slot inherits its
// catalog_xmin, which the standby's physical slot has left behind for ever.
func TestD01NewSlotBesideLagging(t *testing.T) {
	t.Parallel()
	newSlotBesideBusy(t, true)
}

func newSlotBesideBusy(t *testing.T, lagging bool) {
	s := harness.New(t, harness.Options{OnB: withFeedback(), Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.OK(lab.SetupLoad(s.Ctx, s.A))
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('busy', 'pgoutput')")
	if lagging {
		s.Logical(s.A, "lagging")
	}
	busy := &lab.Consumer{Slot: "busy", Deliveries: lab.NewDeliveries()}
	stream, err := busy.Start(s.Ctx, s.A)
	s.OK(err)
	load := lab.StartLoad(s.Ctx, s.A, lab.LoadOptions{Seed: 1, Short: 1, Long: 3, Checkpoints: 300 * time.Millisecond})
	pinned := func(slot string) cluster.XID { return catalogXmin(s, s.A, slot) }
	if lagging {
		// With transactions always open a decoder lets go of old catalogs only when
		// they change.
		s.Wait("busy to pass lagging", func() (bool, string) {
			s.Exec(s.A, "CREATE TABLE passing (); DROP TABLE passing")
			return pinned("lagging").Precedes(pinned("busy")), "it pins from " + pinned("busy").String()
		})
	}
	s.RunEvery(20*time.Millisecond, "slots: {include: [{name: \"*\"}], exclude: [{name: lagging}]}\n")
	s.Safe([]string{"busy"})
	if lagging {
		s.Wait("feedback to pass lagging", func() (bool, string) { return pinned("lagging").Precedes(pinned(s.B.SlotName())), "it has not" })
	}

	s.Logical(s.A, "fresh")
	s.SafeWithin(2, "fresh", s.B)
	s.OK(load.Stop(s.Ctx))
	s.OK(stream.Stop())
	doc := s.Safe([]string{"busy", "fresh"})
	if _, shown := harness.Pair(doc, "lagging", "b"); shown {
		t.Error("the slot lagging is mirrored, though it is excluded")
	}
	s.StopDaemon()
	mirror := s.Slot(s.B, "fresh")
	for _, n := range s.Nodes() {
		if at := catalogXmin(s, n, cluster.HoldName); !at.NotAfter(mirror.CatalogXmin) {
			t.Errorf("the hold on %s pins from %s, the mirror needs %s", n.Name(), at, mirror.CatalogXmin)
		}
	}
	if lagging && !mirror.CatalogXmin.Precedes(pinned(s.B.SlotName())) {
		t.Errorf("the scene is not set: feedback pins from %s, the mirror needs %s", pinned(s.B.SlotName()), mirror.CatalogXmin)
	}

	s.Reshape(s.A)
	want := s.Peek(s.A, "fresh")
	if lagging {
		s.Exec(s.A, "SELECT pg_drop_replication_slot('lagging')")
	}
	s.Pass(s.A, "fresh")
	s.VacuumCatalogs(s.A)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "fresh"), want)
}

// catalogXmin is what a slot of a node pins of the catalogs; 0 for nothing.
func catalogXmin(s *harness.Scene, n *lab.Node, slot string) cluster.XID {
	s.T.Helper()
	var x cluster.XID
	s.OK(n.QueryRow(s.Ctx, fmt.Sprintf("SELECT coalesce(catalog_xmin::text::bigint, 0) FROM pg_replication_slots WHERE slot_name = '%s'", slot)).Scan(&x))
	return x
}
