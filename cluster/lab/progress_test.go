package lab

import (
	"errors"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestProgress(t *testing.T) {
	begun := time.Now()
	var p Progress
	for _, step := range []struct {
		at      uint64
		minutes int // since the beginning
		quiet   int // minutes
	}{
		{at: 0, minutes: 0, quiet: 0},
		{at: 0, minutes: 3, quiet: 3},
		{at: 10, minutes: 4, quiet: 0},
		{at: 11, minutes: 90, quiet: 0}, // slow is not stuck
		{at: 11, minutes: 91, quiet: 1},
		{at: 5, minutes: 92, quiet: 2}, // from the slot's position again
		{at: 11, minutes: 93, quiet: 3},
		{at: 12, minutes: 94, quiet: 0},
	} {
		now := begun.Add(time.Duration(step.minutes) * time.Minute)
		if got := p.Quiet(cluster.LSN(step.at), now); got != time.Duration(step.quiet)*time.Minute {
			t.Errorf("at %d after %d minutes it is quiet for %s, want %d minutes", step.at, step.minutes, got, step.quiet)
		}
	}
}

func TestReceived(t *testing.T) {
	row, end := RowID{Writer: 1, Tx: 7}, cluster.LSN(100)
	s := &Stream{consumer: &Consumer{Slot: "s", Deliveries: NewDeliveries()}}
	s.reach(99)
	if came, err := s.Received(row, end); came || err != nil {
		t.Errorf("before its end: %t, %v", came, err)
	}
	s.reach(100)
	if came, err := s.Received(row, end); came || !errors.Is(err, ErrPassedOver) {
		t.Errorf("past it: %t, %v, want ErrPassedOver", came, err)
	}
	s.Deliveries().add(Delivery{Writer: 1, Tx: 7, Parts: []int32{0}})
	if came, err := s.Received(row, end); !came || err != nil {
		t.Errorf("after it came: %t, %v", came, err)
	}
	s.reach(50)
	if s.Reached() != 100 {
		t.Errorf("it went back to %s", s.Reached())
	}
}
