package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// leastWake is the shortest wait that is worth while for replay to move.
const leastWake = 20 * time.Millisecond

// pace says how soon the next cycle should follow. At once while something
// moves. While a kept read waits for replay, at the position that it waits for;
// where that is seen only by reading, after a quarter of the time that it has
// waited already, so that a standby with a long delay is not asked all the time.
// The same goes for the next move on the primary, counted from the last one.
func (c *cycle) pace() {
	c.pl.Again = c.moved
	if c.moved {
		c.m.MovedAt = c.readAt
	}
	if quiet := c.now.Sub(c.m.MovedAt) / 4; quiet < c.p.Interval {
		c.pl.Poll = max(quiet, time.Millisecond)
	}
	for _, s := range c.pl.Steps {
		if s.Stage == StageApply || s.Stage == StageDrop {
			c.pl.Again = true
		}
	}
	wake := c.p.Interval
	for _, pr := range c.pairs {
		if !pr.read || pr.server || pr.best == len(pr.t.kept)-1 {
			continue
		}
		next := pr.t.kept[pr.best+1]
		wake = min(wake, max(c.now.Sub(next.At)/4, leastWake))
		c.await(pr.node, next.Position.Confirmed)
	}
	if wake < c.p.Interval {
		c.pl.Wake = wake
	}
}

// Unfinished reports whether a plan has left something that a next cycle would
// do at once: changes that were not sent or walks that have not ended, and what
// follows a slot that was dropped. What came to nothing is not tried again before
// Policy.Interval has passed; what was done is done.
func Unfinished(pl Plan, outs []StepOutcome) bool {
	kinds := map[string]StepKind{}
	for _, s := range pl.Steps {
		kinds[s.ID] = s.Kind
	}
	for _, out := range outs {
		if out.Cut {
			return true
		}
		for _, row := range out.Outcomes {
			if row.Resume != "" && kinds[out.StepID] == StepApply || row.Code == cluster.CodeDropped && kinds[out.StepID] == StepDrop {
				return true
			}
		}
	}
	return false
}

func (c *cycle) await(standby string, replay cluster.LSN) {
	if c.pl.Awaits == nil {
		c.pl.Awaits = map[string]cluster.LSN{}
	}
	if other, ok := c.pl.Awaits[standby]; !ok || replay < other {
		c.pl.Awaits[standby] = replay
	}
}
