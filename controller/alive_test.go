package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Only cycles that ended well are a sign of life: a watchdog that is fed by others
// would never bite.
func TestAFailingCycleIsNoSignOfLife(t *testing.T) {
	var leading, waits atomic.Int32
	led(t, func(s *stage) {
		s.c.deps.Alive = func(leads bool) {
			if leads {
				leading.Add(1)
			} else {
				waits.Add(1)
			}
		}
		s.term.fail = errors.New("etcd is full")
	}, func(s *stage) {
		if n := leading.Load(); n != 0 {
			t.Errorf("failing cycles were %d signs of life", n)
		}
		s.term.mu.Lock()
		s.term.fail = nil
		s.term.mu.Unlock()
		time.Sleep(5 * time.Second)
		if n := leading.Load(); n == 0 {
			t.Error("good cycles were no sign of life")
		}
		if n := waits.Load(); n != 0 {
			t.Errorf("%d signs of one that waits, while it leads", n)
		}
	})
}

// While another leads each look at the ledger is one, and where none can each try to.
func TestAFollowerLives(t *testing.T) {
	for name, elect := range map[string]Elector{"another leads": waiting{}, "none can": barred{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				var leading, waits atomic.Int32
				s.c.deps.Alive = func(leads bool) {
					if leads {
						leading.Add(1)
					} else {
						waits.Add(1)
					}
				}
				s.c.deps.Elector = elect
				go func() { _ = s.c.Run(t.Context()) }()
				time.Sleep(900 * time.Millisecond)
				if waits.Load() != 0 {
					t.Error("it is taken for one that waits before it could lead")
				}
				time.Sleep(5 * time.Second)
				if waits.Load() < 4 || leading.Load() != 0 {
					t.Errorf("%d signs as one that waits, %d as a leader", waits.Load(), leading.Load())
				}
			})
		})
	}
}

// barred is an elector whom etcd refuses at once.
type barred struct{ waiting }

func (barred) Campaign(context.Context) (Term, error) { return nil, errors.New("connection refused") }
