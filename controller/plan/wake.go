package plan

import "time"

// leastWake is the shortest wait that is worth while for replay to move.
const leastWake = 20 * time.Millisecond

// pace says how soon the next cycle should follow. At once while something
// moves. Replay is seen only by reading: while a kept read waits for it, after a
// quarter of the time that it has waited already, so that a standby with a long
// delay is not asked all the time.
func (c *cycle) pace() {
	c.pl.Again = c.moved
	for _, s := range c.pl.Steps {
		if s.Stage == StageApply || s.Stage == StageDrop {
			c.pl.Again = true
		}
	}
	if c.pl.Again {
		return
	}
	wake := c.p.Interval
	for _, pr := range c.pairs {
		if !pr.read || pr.server || pr.best == len(pr.t.kept)-1 {
			continue
		}
		next := pr.t.kept[pr.best+1]
		wake = min(wake, max(c.now.Sub(next.At)/4, leastWake))
	}
	if wake < c.p.Interval {
		c.pl.Wake = wake
	}
}
