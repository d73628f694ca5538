package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// changes is a server's wait_for_change: it returns when move is called, or when
// replay reaches the target.
type changes struct {
	mu      sync.Mutex
	count   int
	replay  cluster.LSN
	targets []cluster.LSN
	more    chan struct{} // closed and made anew at each change
}

func newChanges() *changes { return &changes{more: make(chan struct{})} }

func (c *changes) watch(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error) {
	c.mu.Lock()
	if target.OK {
		c.targets = append(c.targets, target.V)
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		now, more := fmt.Sprint(c.count), c.more
		reached := target.OK && c.replay >= target.V
		c.mu.Unlock()
		if now != since || reached {
			return cluster.Watched{Token: now, Changed: now != since, Reached: since != "" && reached}, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return cluster.Watched{Token: since}, nil
		}
	}
}

func (c *changes) change(how func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how()
	close(c.more)
	c.more = make(chan struct{})
}

// move is a slot that moves.
func (c *changes) move() { c.change(func() { c.count++ }) }

func (c *changes) replayed(at cluster.LSN) { c.change(func() { c.replay = at }) }

func (c *changes) awaited(at cluster.LSN) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.targets, at)
}

// led runs test beside the loop of a stage without slots, inside a bubble of
// time, whose goroutines must all end with it.
func led(t *testing.T, prepare func(*stage), test func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.c.cfg.MinGap = 20 * time.Millisecond
		for name, n := range s.nodes {
			n.read.Slots = []cluster.Slot{fakeHold(name)}
			n.obeys(name, func() {}) // the holds are brought into the new ledger's generation
		}
		prepare(s)
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { s.c.lead(ctx, s.term) })
		time.Sleep(5 * time.Second) // what the beginning of a term sets off is over
		test(s)
		cancel()
		loop.Wait()
		s.c.Close()
	})
}

func watchable(s *stage) map[string]*changes {
	all := map[string]*changes{}
	for name, n := range s.nodes {
		all[name] = newChanges()
		n.watch = all[name].watch
	}
	return all
}

// cycles counts those of the loop while something goes on.
func (s *stage) cycles(during func()) int {
	synctest.Wait()
	before := s.nodes["a"].count()
	during()
	synctest.Wait()
	return s.nodes["a"].count() - before
}

func (n *fakeNode) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reads
}

func TestAnIdleClusterIsReadOncePerInterval(t *testing.T) {
	led(t, func(s *stage) { watchable(s) }, func(s *stage) {
		if got := s.cycles(func() { time.Sleep(20 * s.c.cfg.Interval) }); got > 21 || got < 19 {
			t.Errorf("%d cycles in 20 intervals", got)
		}
	})
}

func TestASlotThatMovesIsReadAtOnce(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			var nodes map[string]*changes
			led(t, func(s *stage) { nodes = watchable(s) }, func(s *stage) {
				time.Sleep(s.c.cfg.Interval / 2)
				if got := s.cycles(func() { nodes[name].move() }); got != 1 {
					t.Errorf("%d cycles after a move, want 1 without any time passing", got)
				}
			})
		})
	}
}

func TestASlotThatMovesAllTheTimeKeepsTheGap(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) { nodes = watchable(s) }, func(s *stage) {
		got := s.cycles(func() {
			for range 1000 {
				nodes["a"].move()
				time.Sleep(time.Millisecond)
			}
		})
		if got < 45 || got > 51 {
			t.Errorf("%d cycles in a second of moves, want one per 20 ms", got)
		}
	})
}

// lagging has the slot's confirmed_flush_lsn not yet replayed anywhere.
func lagging(s *stage) {
	for name, n := range s.nodes {
		if name == "a" {
			n.read.Slots = append(n.read.Slots, fakeSlot("cdc"))
		} else {
			n.read.Node.Replay = cluster.Some(cluster.LSN(150))
		}
	}
}

func TestReplayThatIsAwaitedWakesTheLoop(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) { nodes = watchable(s); lagging(s) }, func(s *stage) {
		for _, name := range []string{"b", "c"} {
			if !nodes[name].awaited(200) {
				t.Errorf("%s was not asked to wait for 0/C8", name)
			}
		}
		if nodes["a"].awaited(200) {
			t.Error("the primary was asked to wait for replay")
		}
		if got := s.nodes["a"].count(); got > 12 {
			t.Errorf("%d cycles in the first seconds: the loop polls", got)
		}
		time.Sleep(s.c.cfg.Interval / 2)
		got := s.cycles(func() {
			nodes["b"].replayed(199)
			synctest.Wait()
			b := s.nodes["b"]
			b.mu.Lock()
			b.read.Node.Replay = cluster.Some(cluster.LSN(200))
			b.mu.Unlock()
			nodes["b"].replayed(200)
		})
		if got != 1 {
			t.Errorf("%d cycles when the position was replayed, want 1", got)
		}
		if !slices.Contains(s.nodes["b"].kinds(), "apply") {
			t.Error("b was given no mirror")
		}
	})
}

func TestServersWithoutTheProcedureArePolled(t *testing.T) {
	led(t, lagging, func(s *stage) {
		if got := s.nodes["a"].count(); got < 15 {
			t.Errorf("%d cycles in the first seconds although replay is awaited", got)
		}
	})
}

func TestANodeThatFailsIsWaitedOnAgain(t *testing.T) {
	tries := 0
	var again *changes
	led(t, func(s *stage) {
		again = watchable(s)["a"]
		s.nodes["a"].watch = func(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error) {
			if tries++; tries < 5 {
				return cluster.Watched{}, errors.New("connection refused")
			}
			return again.watch(ctx, since, target)
		}
	}, func(s *stage) {
		time.Sleep(s.c.cfg.Interval / 4) // between two ticks
		if got := s.cycles(func() { again.move() }); got != 1 {
			t.Errorf("%d cycles after a move, want 1", got)
		}
	})
	if tries > 10 {
		t.Errorf("it was asked %d times", tries)
	}
}

// shrinking is a topology that a member leaves.
type shrinking struct {
	mu    sync.Mutex
	names fakeSource
}

func (s *shrinking) Topology(ctx context.Context) (cluster.Topology, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.Topology(ctx)
}

func TestAWatcherEndsWithItsNode(t *testing.T) {
	source := &shrinking{names: fakeSource{"a", "b", "c"}}
	ended := make(map[string]int)
	var mu sync.Mutex
	led(t, func(s *stage) {
		s.c.deps.Source = source
		for name, c := range watchable(s) {
			s.nodes[name].watch = func(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error) {
				told, err := c.watch(ctx, since, target)
				if told == (cluster.Watched{Token: since}) {
					mu.Lock()
					ended[name]++
					mu.Unlock()
				}
				return told, err
			}
		}
	}, func(s *stage) {
		source.mu.Lock()
		source.names = fakeSource{"a", "b"}
		source.mu.Unlock()
		time.Sleep(2 * s.c.cfg.Interval)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if ended["c"] != 1 || ended["b"] != 0 {
			t.Errorf("calls ended: %v, want c's only", ended)
		}
	})
}
