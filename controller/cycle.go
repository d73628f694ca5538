package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Cycle observes, decides, applies, settles and publishes once, and says how
// soon the next one should follow. A panic is a failed cycle.
func (c *Controller) Cycle(ctx context.Context) (next time.Duration, err error) {
	next = c.cfg.Interval
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CycleTimeout)
	defer cancel()
	c.cycle++
	defer func() {
		if p := recover(); p != nil {
			err = caught(c.deps.Logger, fmt.Sprintf("cycle %d", c.cycle), p)
		}
	}()
	c.awaits, c.wrote = nil, nil
	seen := c.observe(ctx)
	if !c.term.Valid(c.deps.Now()) {
		// What it saw may be a successor's work, which is nothing to tell of.
		return next, errLeaseOver
	}
	todo := plan.Decide(c.deps.Now(), c.cfg.Policy, seen, c.memory)
	if err := c.rememberFirst(ctx, todo.Memory); err != nil {
		return next, err
	}
	done := c.apply(ctx, todo)
	mem, verdicts, conditions := plan.Settle(c.deps.Now(), c.cfg.Policy, seen, todo, done)
	c.memory = mem
	c.publish(ctx, seen, todo, verdicts, conditions)
	c.awaits, c.wrote = todo.Awaits, changed(todo, done)
	return c.pause(todo, done), nil
}

// errLeaseOver: the lease ended while the cycle observed.
var errLeaseOver = fmt.Errorf("the lease is no longer ours")

// Plan observes and decides once and changes nothing.
func (c *Controller) Plan(ctx context.Context) (plan.Plan, plan.Observation) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CycleTimeout)
	defer cancel()
	c.cycle++
	seen := c.observe(ctx)
	return plan.Decide(c.deps.Now(), c.cfg.Policy, seen, c.memory), seen
}

// pause is how long to wait before the next cycle: not at all where this one has
// left something to do, or where nothing would signal what comes.
func (c *Controller) pause(todo plan.Plan, done []plan.StepOutcome) time.Duration {
	if plan.Unfinished(todo, done) {
		return c.cfg.MinGap
	}
	next := c.cfg.Interval
	if todo.Poll > 0 && !c.watches(todo.Primary) {
		next = min(next, todo.Poll)
	}
	if todo.Wake > 0 && !c.watchesAll(todo.Awaits) {
		next = min(next, todo.Wake)
	}
	return max(next, c.cfg.MinGap)
}

// watchesAll reports whether all that is awaited will be signalled.
func (c *Controller) watchesAll(awaits map[string]cluster.LSN) bool {
	for name := range awaits {
		if !c.watches(name) {
			return false
		}
	}
	return len(awaits) > 0
}
