package controller

import (
	"context"
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
	unwritten  time.Time                   // since when the ledger could not be written

	moved   chan signal // from the watchers
	reload  chan Config
	kicks   chan kick
	forgets chan forgetting
	shown   atomic.Pointer[status.Status]
}

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

// Close ends every session. Run does it by itself.
func (c *Controller) Close() { c.closeReaders() }

// Status is the last one published; false before the first.
func (c *Controller) Status() (status.Status, bool) {
	s := c.shown.Load()
	if s == nil {
		return status.Status{}, false
	}
	return *s, true
}
