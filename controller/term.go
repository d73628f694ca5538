package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/status"
)

// campaign waits for leadership; meanwhile the ledger's status is shown.
func (c *Controller) campaign(ctx context.Context) (term Term, err error) {
	waiting, cancel := context.WithCancel(ctx)
	var followers sync.WaitGroup
	followers.Go(func() { c.follow(waiting) })
	defer followers.Wait()
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = caught(c.deps.Logger, "campaigning", p)
		}
	}()
	c.awaitKnownLedger(ctx)
	return c.deps.Elector.Campaign(ctx)
}

// awaitKnownLedger does not stand for leadership while no term could begin with the
// ledger that is there: a newer program's, which whoever leads would write, or one
// that cannot be read, with which each try would only cost etcd some writes. An etcd
// that does not answer is the campaign's to meet.
func (c *Controller) awaitKnownLedger(ctx context.Context) {
	for said := false; ; said = true {
		parts, err := c.load(ctx)
		if err != nil {
			return
		}
		if _, err = status.Recall(parts); err == nil {
			return
		}
		if !said {
			c.deps.Logger.Error("the ledger is read only, and this controller does not lead", "error", err)
		}
		if !wait(ctx, c.cfg.Interval) {
			return
		}
	}
}

// load reads the ledger as a follower.
func (c *Controller) load(ctx context.Context) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ReadTimeout)
	defer cancel()
	return c.deps.Elector.Load(ctx)
}

// lead runs cycles until the term or ctx ends.
func (c *Controller) lead(ctx context.Context, term Term) {
	log := c.deps.Logger.With("epoch", int64(term.Epoch()))
	log.Info("leading")
	if err := c.Begin(ctx, term); err != nil {
		log.Error("beginning the term, giving it back", "error", err)
		c.resign(term)
		wait(ctx, c.cfg.Interval)
		return
	}
	timer := newPacer()
	defer timer.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	watching, stopWatching := context.WithCancel(term.Context())
	defer stopWatching()
	asking.Go(func() { c.watchSpace(watching, term) })
	var asked []kick
	defer func() { answer(asked, errNoLonger) }()
	changed := c.announced()
	for {
		select {
		case <-ctx.Done():
			c.recordLast()
			c.resign(term)
			return
		case <-term.Context().Done():
			log.Warn("leadership lost", "why", context.Cause(term.Context()))
			c.disown()
			return
		case cfg := <-c.reload:
			cfg.Policy.TakeOver = c.cfg.Policy.TakeOver // it was asked of this process
			c.cfg = cfg
			log.Info("configuration reloaded")
		case k := <-c.kicks:
			asked = append(asked, k)
			timer.soon(0)
			continue
		case f := <-c.forgets:
			f.done <- c.ForgetNow(f.node)
			continue
		case s := <-c.moved:
			if s.counts() {
				timer.soon(c.cfg.MinGap)
			}
			continue
		case <-changed:
			timer.soon(0)
			continue
		case <-timer.C:
		}
		asked = append(asked, c.drainKicks()...)
		next, err := c.Cycle(ctx)
		if err != nil && err != errLeaseOver && ctx.Err() == nil && term.Context().Err() == nil {
			c.showFailure(err)
		}
		if err == nil {
			c.deps.Alive(true)
		}
		answer(asked, err)
		asked = nil
		c.watch(watching)
		timer.next(next)
	}
}

// announced is where the source signals; nil, which never does, for one that cannot.
func (c *Controller) announced() <-chan struct{} {
	if a, ok := c.deps.Source.(announcer); ok {
		return a.Changed()
	}
	return nil
}

// Begin makes term the one that the next cycles write under. Memory starts
// from the ledger; what only a predecessor knew is read anew.
func (c *Controller) Begin(ctx context.Context, term Term) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = caught(c.deps.Logger, "beginning the term", p)
		}
	}()
	loading, cancel := context.WithTimeout(ctx, c.cfg.CycleTimeout)
	defer cancel()
	parts, err := term.Load(loading)
	if err != nil {
		return fmt.Errorf("loading the ledger: %w", err)
	}
	mem, err := status.Recall(parts)
	if err != nil {
		return fmt.Errorf("loading the ledger: %w", err)
	}
	mem.Epoch, mem.Store, mem.TakenOver = term.Epoch(), term.Store(), c.memory.TakenOver
	c.memory, c.term = mem, term
	c.ledger = newLedger(parts)
	for _, r := range c.readers {
		r.abandon() // what was asked before this term says nothing of what another leader did meanwhile
	}
	return nil
}

// resign gives the leadership back within two seconds; etcd forgets it by
// itself after the lease's time to live where that fails.
func (c *Controller) resign(term Term) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := term.Resign(ctx); err != nil {
		c.deps.Logger.Warn("giving the leadership back", "error", err)
	}
}

// wait pauses for d; false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
