package topology

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// B is promoted although A and C, and the consumer, had more. A and C are
// rewound. Where their slots are gone by it, mirrors are made anew; where the
// tool left the slots alone, an original and a mirror stand beyond the fork, on
// WAL that is no more, and are replaced: waiting for the slot to come there
// again would give another history's rows for the consumer's.
func TestDemotedAndDiverged(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"rewound": false, "slots kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
			link := s.Stream(s.B)
			link.Stall()
			s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 10)")
			s.Get(s.A, "cdc")
			ahead := map[*lab.Node]harness.Slot{s.C: s.Mirrored("cdc", s.C), s.A: s.Slot(s.A, "cdc")}
			s.FreezeDaemon()
			link.Cut()
			s.FailOver(s.B)
			s.Leads(s.B) // and B is the former A
			fork, err := s.A.Fork(s.Ctx)
			s.OK(err)
			for _, n := range []*lab.Node{s.B, s.C} {
				if ahead[n].Confirmed <= fork {
					t.Fatalf("the scene is not set: the slot on %s is at %s, the fork at %s", n.Name(), ahead[n].Confirmed, fork)
				}
				if kept && !n.Running() {
					s.OK(n.Start(s.Ctx)) // with its slots, which keep the WAL that rewinding needs
				}
				s.OK(n.StopFast(s.Ctx))
				rewind := func() { s.OK(n.Rewind(s.Ctx, s.A)) }
				if kept {
					s.KeepingSlots(n, rewind)
				} else {
					rewind()
				}
				s.OK(n.Start(s.Ctx))
				if s.Has(n, "cdc") != kept {
					t.Fatalf("the scene is not set: %s has its slot: %t", n.Name(), !kept)
				}
			}
			// The new history goes beyond where the old one ended, with other rows.
			s.Exec(s.A, "INSERT INTO t SELECT generate_series(101, 200)")
			want := s.Peek(s.A, "cdc")
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.OK(s.C.WaitCatchup(s.Ctx, s.A))
			s.ThawDaemon()
			s.Safe([]string{"cdc"})
			for _, n := range []*lab.Node{s.B, s.C} {
				if now := s.Slot(n, "cdc"); now.Confirmed >= ahead[n].Confirmed || now.Confirmed > s.Slot(s.A, "cdc").Confirmed {
					t.Errorf("the mirror on %s is %+v, it was %+v; the slot is at %s", n.Name(), now, ahead[n], s.Slot(s.A, "cdc").Confirmed)
				}
			}
			s.Same(s.Peek(s.A, "cdc"), want)
			s.FailOver(s.C)
			s.Same(s.Get(s.C, "cdc"), want)
		})
	}
}
