package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Config is what the loop needs of the configuration.
type Config struct {
	Policy       plan.Policy
	Interval     time.Duration // the longest wait between two cycles
	MinGap       time.Duration // the shortest
	ReadTimeout  time.Duration // for one read of one node
	CycleTimeout time.Duration // for everything one cycle does
}

// Deps is what the loop stands on.
type Deps struct {
	Source  Source
	Dial    Dialer
	Elector Elector
	Logger  hclog.Logger
	Now     func() time.Time
	// Alive, where it is not nil, is told of each cycle that has ended well, and,
	// while another controller leads or none can, of each look at the ledger. What
	// watches this process knows from it that the loop turns.
	Alive func(leading bool)
}

// Controller runs cycles. Create it with New; Run or Cycle are for one
// goroutine, the other methods for any.
type Controller struct {
	deps Deps
	cfg  Config

	// What only the cycling goroutine touches.
	readers map[string]*reader
	memory  plan.Memory
	cycle   uint64
	ledger  ledger
	term    Term
	awaits  map[string]cluster.LSN // replay positions that the next cycle waits for, per standby
	wrote   map[string]bool        // the standbys whose slots the last cycle has changed

	topology   plan.Fact[cluster.Topology] // the last one, for the log
	space      atomic.Pointer[Space]       // how full etcd is; nil: not known
	spaceSince time.Time                   // since when that is a condition

	moved   chan signal // from the watchers
	reload  chan Config
	kicks   chan kick
	forgets chan forgetting
	shown   atomic.Pointer[status.Status]
}

// kick asks for a cycle begun from now on; done gets its error.
type kick struct{ done chan error }

// New makes a controller that has not begun.
func New(cfg Config, deps Deps) *Controller {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Logger == nil {
		deps.Logger = hclog.NewNullLogger()
	}
	if deps.Alive == nil {
		deps.Alive = func(bool) {}
	}
	return &Controller{
		deps:    deps,
		cfg:     cfg,
		readers: map[string]*reader{},
		moved:   make(chan signal),
		reload:  make(chan Config, 1),
		kicks:   make(chan kick, 16),
		forgets: make(chan forgetting),
	}
}

// TakeOver has the loop replace the fence of another etcd, once on each node.
// Call it before Run.
func (c *Controller) TakeOver() { c.cfg.Policy.TakeOver = true }

// Run campaigns, leads, and campaigns again until ctx ends. Mirrors stay as
// they are when it returns; a leadership still held is given back.
func (c *Controller) Run(ctx context.Context) error {
	defer c.closeReaders()
	for ctx.Err() == nil {
		term, err := c.campaign(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			c.deps.Logger.Warn("no leadership, trying again", "error", err)
			c.showUnreachable(err)
			if !wait(ctx, c.cfg.Interval) {
				break
			}
			c.deps.Alive(false)
			continue
		}
		c.lead(ctx, term)
	}
	return nil
}

// campaign waits for leadership; meanwhile the ledger's status is shown.
func (c *Controller) campaign(ctx context.Context) (Term, error) {
	waiting, cancel := context.WithCancel(ctx)
	var followers sync.WaitGroup
	followers.Go(func() { c.follow(waiting) })
	c.awaitKnownLedger(ctx)
	term, err := c.deps.Elector.Campaign(ctx)
	cancel()
	followers.Wait()
	return term, err
}

// awaitKnownLedger does not stand for leadership while a newer program's ledger is
// there: whoever leads writes it. What else goes wrong is the campaign's to meet.
func (c *Controller) awaitKnownLedger(ctx context.Context) {
	for said := false; ; said = true {
		parts, err := c.load(ctx)
		if err == nil {
			err = status.Known(parts)
		}
		var newer *status.NewerError
		if !errors.As(err, &newer) {
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

func (c *Controller) drainKicks() []kick {
	var ks []kick
	for {
		select {
		case k := <-c.kicks:
			ks = append(ks, k)
		default:
			return ks
		}
	}
}

func answer(ks []kick, err error) {
	for _, k := range ks {
		k.done <- err
	}
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

// Plan observes and decides once and changes nothing.
func (c *Controller) Plan(ctx context.Context) (plan.Plan, plan.Observation) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CycleTimeout)
	defer cancel()
	c.cycle++
	seen := c.observe(ctx)
	return plan.Decide(c.deps.Now(), c.cfg.Policy, seen, c.memory), seen
}

// Close ends every session. Run does it by itself.
func (c *Controller) Close() { c.closeReaders() }

// Reload hands the loop a new configuration, taken before its next cycle.
func (c *Controller) Reload(cfg Config) {
	select {
	case <-c.reload:
	default:
	}
	c.reload <- cfg
}

// Status is the last one published; false before the first.
func (c *Controller) Status() (status.Status, bool) {
	s := c.shown.Load()
	if s == nil {
		return status.Status{}, false
	}
	return *s, true
}

// errLeaseOver: the lease ended while the cycle observed.
var errLeaseOver = fmt.Errorf("the lease is no longer ours")

// errNoLonger is the answer to a request for a cycle where no cycle follows.
var errNoLonger = fmt.Errorf("this controller does not lead")

// ErrNotLeading reports whether err says that a cycle was asked of a controller
// that does not lead.
func ErrNotLeading(err error) bool { return err == errNoLonger }

// RequestSync has a cycle begun from now on and returns when it is over.
func (c *Controller) RequestSync(ctx context.Context) error {
	k := kick{done: make(chan error, 1)}
	select {
	case c.kicks <- k:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-k.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
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
