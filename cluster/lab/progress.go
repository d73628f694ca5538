package lab

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ErrPassedOver says that a stream has sent all up to a position, and a row that was
// committed before it was not among that.
var ErrPassedOver = errors.New("the stream has passed over it")

// Reached is how far the server says that it has sent everything. It only rises, and
// not beyond the end of the server's WAL.
func (s *Stream) Reached() cluster.LSN { return cluster.LSN(s.reached.Load()) }

// Deliveries is where the stream notes what it receives.
func (s *Stream) Deliveries() *Deliveries { return s.consumer.Deliveries }

// Received reports whether the transaction of a row has come that was committed
// before end, a position. ErrPassedOver: it will not come any more.
func (s *Stream) Received(row RowID, end cluster.LSN) (bool, error) {
	reached := s.Reached() // read first: what comes after it may come meanwhile
	if s.Deliveries().Has(row) {
		return true, nil
	}
	if reached >= end {
		return false, fmt.Errorf("row %s was committed before %s, and slot %q is at %s: %w", row, end, s.consumer.Slot, reached, ErrPassedOver)
	}
	return false, nil
}

// Progress tells a stream that gets on, however slowly, from one that is stuck.
type Progress struct {
	furthest cluster.LSN
	since    time.Time
}

// Quiet is for how long nobody has got further than before, when a stream is at a
// position now. Going over the same ground again, as a stream does after its server's
// restart, is no progress.
func (p *Progress) Quiet(at cluster.LSN, now time.Time) time.Duration {
	if p.since.IsZero() || at > p.furthest {
		p.furthest, p.since = at, now
	}
	return now.Sub(p.since)
}
