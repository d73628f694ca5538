package controller

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// following has a slot cdc mirrored on both standbys, whose own waiting sees what
// an apply has moved, as that of real servers does.
func following(s *stage, nodes map[string]*changes) {
	s.nodes["a"].read.Slots = append(s.nodes["a"].read.Slots, fakeSlot("cdc"))
	for name, n := range s.nodes {
		n.obeys(name, nodes[name].move)
	}
}

// confirm is the consumer's: it moves cdc on the primary.
func (s *stage) confirm(nodes map[string]*changes, at cluster.LSN) {
	a := s.nodes["a"]
	a.mu.Lock()
	i := slices.IndexFunc(a.read.Slots, func(s cluster.Slot) bool { return s.Name == "cdc" })
	a.read.Slots = slices.Clone(a.read.Slots)
	a.read.Slots[i].Confirmed = cluster.Some(at)
	a.mu.Unlock()
	nodes["a"].move()
}

func (s *stage) mirrorAt(node string) cluster.LSN {
	n := s.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, slot := range n.read.Slots {
		if slot.Name == "cdc" {
			return slot.Confirmed.V
		}
	}
	return 0
}

func TestAMoveThatIsReplayedCostsOneCycle(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) { nodes = watchable(s); following(s, nodes) }, func(s *stage) {
		for i := range cluster.LSN(5) {
			time.Sleep(s.c.cfg.Interval + s.c.cfg.Interval/4) // well between two ticks
			got := s.cycles(func() {
				s.confirm(nodes, 300+i)
				time.Sleep(s.c.cfg.Interval / 4)
			})
			if at := s.mirrorAt("b"); got != 1 || at != 300+i {
				t.Errorf("move %d: %d cycles, want 1; the mirror is at %s", i, got, at)
			}
		}
	})
}

// What replay reaches while mirrors are being moved is no doing of the cycle's.
func TestAMoveThatWaitsForReplayFollowsAtOnce(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) { nodes = watchable(s); following(s, nodes) }, func(s *stage) {
		time.Sleep(s.c.cfg.Interval / 4)
		got := s.cycles(func() {
			s.confirm(nodes, 2000)
			time.Sleep(s.c.cfg.Interval / 8)
			for _, name := range []string{"b", "c"} {
				n := s.nodes[name]
				n.mu.Lock()
				n.read.Node.Replay = cluster.Some(cluster.LSN(2000))
				n.mu.Unlock()
			}
			nodes["b"].replayed(2000)
			nodes["c"].replayed(2000)
			time.Sleep(s.c.cfg.Interval / 8)
		})
		if at := s.mirrorAt("b"); got > 3 || at != 2000 {
			t.Errorf("%d cycles, want 2 or 3; the mirror is at %s", got, at)
		}
	})
}

// Somebody's change on a standby is read at once, also soon after an apply.
func TestAStrangersChangeOnAStandbyIsRead(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) { nodes = watchable(s); following(s, nodes) }, func(s *stage) {
		time.Sleep(s.c.cfg.Interval / 4)
		s.confirm(nodes, 300)
		time.Sleep(5 * s.c.cfg.MinGap)
		if got := s.cycles(func() { nodes["b"].move(); time.Sleep(2 * s.c.cfg.MinGap) }); got != 1 {
			t.Errorf("%d cycles after the change, want 1", got)
		}
	})
}

// Where the primary cannot be waited on, a slot that moves is polled.
func TestAMovingSlotIsPolledWithoutTheProcedure(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) {
		nodes = watchable(s)
		following(s, nodes)
		s.nodes["a"].watch = nil
	}, func(s *stage) {
		got := s.cycles(func() {
			for i := range cluster.LSN(200) {
				s.confirm(nodes, 300+i)
				time.Sleep(s.c.cfg.MinGap / 2) // each poll finds a move, also one at the same moment
			}
		})
		if got < 30 {
			t.Errorf("%d cycles while the slot moved for two seconds", got)
		}
	})
}

// A slot that moves more slowly than the shortest gap is followed too, and not
// once per interval.
func TestASlowlyMovingSlotIsPolledWithoutTheProcedure(t *testing.T) {
	var nodes map[string]*changes
	led(t, func(s *stage) {
		nodes = watchable(s)
		following(s, nodes)
		s.nodes["a"].watch = nil
	}, func(s *stage) {
		time.Sleep(s.c.cfg.Interval)
		s.confirm(nodes, 300)
		time.Sleep(2 * s.c.cfg.Interval)
		for i := range cluster.LSN(10) {
			s.confirm(nodes, 301+i)
			time.Sleep(s.c.cfg.Interval / 8)
			if at := s.mirrorAt("b"); i > 0 && at != 301+i {
				t.Errorf("move %d: the mirror is at %s", i, at)
			}
			time.Sleep(s.c.cfg.Interval / 8)
		}
		if got := s.cycles(func() { time.Sleep(20 * s.c.cfg.Interval) }); got > 60 {
			t.Errorf("%d cycles in twenty intervals after the last move", got)
		}
	})
}

func many(count int) []plan.Step {
	step := plan.Step{ID: "apply/b", Stage: plan.StageApply, Node: "b", Kind: plan.StepApply}
	for i := range count {
		step.Changes = append(step.Changes, cluster.Change{Name: string(rune('a' + i%26)), Snapshot: cluster.Some([]byte{1})})
	}
	return []plan.Step{step}
}

func TestALargeApplyIsMadeInParts(t *testing.T) {
	whole := many(1000)[0]
	var sent []cluster.Change
	for _, part := range parts(whole) {
		if len(part.Changes) == 0 || len(part.Changes) > maxChanges {
			t.Fatalf("a part of %d changes", len(part.Changes))
		}
		sent = append(sent, part.Changes...)
	}
	if len(sent) != 1000 {
		t.Errorf("%d of 1000 changes are sent", len(sent))
	}
	big := many(3)[0]
	for i := range big.Changes {
		big.Changes[i].Snapshot = cluster.Some(make([]byte, maxFiles))
	}
	if got := len(parts(big)); got != 3 {
		t.Errorf("three large files in %d calls", got)
	}
	if got := len(parts(plan.Step{Kind: plan.StepHold})); got != 1 {
		t.Errorf("a step without changes is %d calls", got)
	}
}

// The first apply of a thousand slots is more than one cycle has time for: each
// cycle ends whole, and the next one goes on at once.
func TestAnApplyThatTakesLongGoesOnInTheNextCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.nodes["a"].read.Node.MaxSlots = 2000
		for name, n := range s.nodes {
			n.read.Node.MaxSlots = 2000
			n.read.Slots = []cluster.Slot{fakeHold(name)}
			n.obeys(name, func() { time.Sleep(time.Second) }) // a slow disk
		}
		for i := range 1000 {
			s.nodes["a"].read.Slots = append(s.nodes["a"].read.Slots, fakeSlot("s"+string(rune('0'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10))))
		}
		safe := 0
		for cycle := range 20 {
			begun := time.Now()
			next, err := s.c.Cycle(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > s.c.cfg.CycleTimeout {
				t.Errorf("cycle %d took %s", cycle, took)
			}
			doc, _ := s.c.Status()
			before := safe
			safe = 0
			for _, row := range doc.Slots {
				if p := pairOf(doc, row.Name, "b"); p.Verdict == plan.Safe {
					safe++
				} else if p.Verdict != plan.Pending || p.Reason != plan.ReasonNew {
					t.Fatalf("%s is %s %s: %s", row.Name, p.Verdict, p.Reason, p.Message)
				}
			}
			if safe == 1000 {
				return
			}
			if safe > 0 && safe == before {
				t.Fatalf("cycle %d made nothing SAFE beyond %d", cycle, safe)
			}
			if safe > 0 && next != s.c.cfg.MinGap {
				t.Errorf("cycle %d left %d slots undone and waits %s", cycle, 1000-safe, next)
			}
		}
		t.Errorf("%d of 1000 are SAFE after 20 cycles", safe)
	})
}
