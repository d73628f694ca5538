package controller

import (
	"testing"
	"testing/synctest"
	"time"
)

// A standby behind a black hole costs a moment for each read that it does not
// answer, and not one for each cycle: the others' slots move all the time.
func TestABlackHoledStandbySlowsACycleOncePerRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.c.cfg.ReadTimeout = s.c.cfg.CycleTimeout
		for name, n := range s.nodes {
			n.obeys(name, func() {})
		}
		s.cycle(t)
		s.nodes["b"].mu.Lock()
		s.nodes["b"].hang = true
		s.nodes["b"].mu.Unlock()
		s.cycle(t)                      // it falls silent
		time.Sleep(s.c.cfg.ReadTimeout) // and its read ends
		s.cycle(t)                      // which says so, and the next one is given its moment
		begun := time.Now()
		for range 10 {
			s.cycle(t)
		}
		if waited := time.Since(begun); waited > failedPatience {
			t.Errorf("ten cycles waited for it for %s", waited)
		}
		s.nodes["b"].mu.Lock()
		s.nodes["b"].hang = false
		s.nodes["b"].mu.Unlock()
		time.Sleep(s.c.cfg.ReadTimeout)
		s.cycle(t) // the last read that it did not answer
		s.cycle(t)
		if p := pairOf(s.cycle(t), "cdc", "b"); p.Verdict != "SAFE" {
			t.Errorf("back again it is %+v", p)
		}
		s.c.Close()
	})
}
