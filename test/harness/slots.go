package harness

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Slot is one slot as the extension shows it.
type Slot struct {
	cluster.Position
	Way         string // of a mirror: how it was proven
	Snapshot    string // valid, absent or bad: the file at restart_lsn
	Incarnation string // of its directory
}

// Slot reads one slot of a node; the test ends where it is not there.
func (s *Scene) Slot(n *lab.Node, name string) Slot {
	s.T.Helper()
	var slot Slot
	var restart, confirmed string
	err := n.QueryRow(s.Ctx, `SELECT restart_lsn::text, confirmed_flush_lsn::text, catalog_xmin::text::bigint,
		coalesce((marker).way, ''), snapshot, incarnation::text FROM slotkeeper.slots() WHERE name = $1`, name).
		Scan(&restart, &confirmed, &slot.CatalogXmin, &slot.Way, &slot.Snapshot, &slot.Incarnation)
	if err != nil {
		s.T.Fatalf("reading slot %s on %s: %v", name, n.Name(), err)
	}
	slot.Restart, err = cluster.ParseLSN(restart)
	s.OK(err)
	slot.Confirmed, err = cluster.ParseLSN(confirmed)
	s.OK(err)
	return slot
}

// Mirrored waits until a slot is SAFE on a standby at exactly the position
// that it has on the primary, now or later, and gives the mirror.
func (s *Scene) Mirrored(name string, on *lab.Node) Slot {
	s.T.Helper()
	s.Wait("the mirror of "+name+" on "+on.Name()+" to be where the slot is", func() (bool, string) {
		want := s.Slot(s.A, name).Position
		s.Safe([]string{name}, on)
		at := s.Slot(on, name).Position
		return at == want, fmt.Sprintf("it is at %+v, the slot at %+v", at, want)
	})
	return s.Slot(on, name)
}

// RunEvery is Run with another longest wait between two cycles.
func (s *Scene) RunEvery(interval time.Duration, more string) {
	s.T.Helper()
	s.RunWith(lab.DaemonOptions{Interval: interval, More: more})
}

// Cycles waits until the controller has begun and ended so many further cycles.
func (s *Scene) Cycles(count uint64) {
	s.T.Helper()
	var from uint64
	s.Wait("further cycles", func() (bool, string) {
		doc, ok := s.Status()
		if ok && from == 0 {
			from = doc.Cycle
		}
		// One may have been under way at the first look.
		return ok && doc.Cycle > from+count, "the controller stands still"
	})
}

// Unproven waits until a slot is PENDING no_consistent_point on a standby, and
// sees it stay so, with nothing of it there.
func (s *Scene) Unproven(name string, on *lab.Node) {
	s.T.Helper()
	s.Verdict(name, on, plan.Pending, plan.ReasonNoConsistentPoint)
	s.Cycles(3)
	s.Verdict(name, on, plan.Pending, plan.ReasonNoConsistentPoint)
	if s.Has(on, name) {
		s.T.Errorf("%s has slot %s although nothing proves it", on.Name(), name)
	}
}

// NoCondition waits until an observation begun after now shows no condition of
// this code.
func (s *Scene) NoCondition(code string) {
	s.T.Helper()
	began := time.Now()
	s.Wait("no condition "+code, func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		for _, f := range doc.Conditions {
			if f.Code == code {
				return false, f.Message
			}
		}
		return doc.ObservedAt.After(began), "no observation since"
	})
}

// SafeWithin waits until the standby has replayed all that the primary has
// written, and then wants a slot to be SAFE there after so many cycles and ever
// after: cycles, not seconds, so that a slow machine changes nothing.
func (s *Scene) SafeWithin(cycles uint64, name string, on *lab.Node) {
	s.T.Helper()
	s.OK(on.WaitCatchup(s.Ctx, s.A))
	var from uint64
	s.Wait("a document", func() (bool, string) {
		doc, ok := s.Status()
		from = doc.Cycle
		return ok, "the controller does not answer"
	})
	// The cycle after from may have read the nodes before this began.
	due := from + 1 + cycles
	s.Wait("the cycle that is due", func() (bool, string) {
		doc, ok := s.Status()
		if !ok || doc.Cycle < due {
			return false, "the controller stands still"
		}
		if p, there := Pair(doc, name, on.Name()); !there || p.Verdict != plan.Safe {
			s.T.Fatalf("slot %s on %s is %q %s after %d cycles: %s", name, on.Name(), p.Verdict, p.Reason, doc.Cycle-from, p.Message)
		}
		return true, ""
	})
}
