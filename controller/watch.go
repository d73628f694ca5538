package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// A node that cannot be waited on is tried again after watchRetry, then twice as
// long each time; one that lacks the procedure after watchUnable.
const (
	watchRetry    = 100 * time.Millisecond
	watchRetryMax = 5 * time.Second
	watchUnable   = time.Minute
)

// watcher waits on one node and signals the loop when it has moved. It knows
// nothing of what moved: the cycle reads.
type watcher struct {
	node  Node
	moved chan<- signal
	gap   time.Duration
	log   hclog.Logger
	end   context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	target  cluster.Opt[cluster.LSN] // the replay position that the loop waits for
	recall  context.CancelFunc       // ends the call that is under way
	waiting bool                     // the node can be waited on
	writes  int                      // how many cycles have written to the node
}

// signal is what a watcher tells the loop.
type signal struct {
	from    *watcher
	writes  int // when the waiting began
	reached bool
}

// counts reports whether a cycle should follow. What has moved on a standby
// while a cycle moved its mirrors is taken for that cycle's doing: else each move
// would cost a second cycle, in which nothing is to be done.
func (s signal) counts() bool { return s.reached || !s.from.wroteSince(s.writes) }

// watch has a watcher on every node, each waiting for what the last cycle wants.
func (c *Controller) watch(ctx context.Context) {
	for name, r := range c.readers {
		if r.node == nil {
			continue
		}
		if r.watch == nil || r.watch.hasEnded() {
			r.watch = startWatcher(ctx, r.node, c.moved, c.cfg.MinGap, c.deps.Logger.With("node", name))
		}
		if c.wrote[name] {
			r.watch.noteWrite()
		}
		target, ok := c.awaits[name]
		r.watch.aim(cluster.Opt[cluster.LSN]{V: target, OK: ok})
	}
}

// watches reports whether a move on this node will be signalled.
func (c *Controller) watches(node string) bool {
	r := c.readers[node]
	return r != nil && r.watch != nil && r.watch.works()
}

func startWatcher(ctx context.Context, node Node, moved chan<- signal, gap time.Duration, log hclog.Logger) *watcher {
	ctx, end := context.WithCancel(ctx)
	w := &watcher{node: node, moved: moved, gap: gap, log: log, end: end, ended: make(chan struct{})}
	go w.run(ctx)
	return w
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.ended)
	defer w.end()
	defer func() {
		if p := recover(); p != nil {
			caught(w.log, "waiting for changes", p)
		}
	}()
	token, retry, quietly := "", watchRetry, false
	for ctx.Err() == nil {
		told, s, recalled, err := w.once(ctx, token)
		if err != nil && !recalled {
			w.log.Debug("cannot wait for changes, reading once in a while", "error", err)
			wait(ctx, max(retry, unable(err)))
			retry, quietly = min(2*retry, watchRetryMax), false
			continue
		}
		if err == nil {
			token, retry = told.Token, watchRetry
		}
		if told.Changed && !quietly || told.Reached {
			if !w.signal(ctx, s) {
				return
			}
		}
		if quietly = told.Changed && w.wroteSince(s.writes); quietly {
			token = "" // what the cycle has written is in the next one
			continue
		}
		// What moves all the time is asked about once per gap: no cycle could
		// come sooner.
		if !recalled {
			wait(ctx, w.gap)
		}
	}
}

// once waits until the node has moved, or aim calls it back.
func (w *watcher) once(ctx context.Context, token string) (told cluster.Watched, s signal, recalled bool, err error) {
	call, recall := context.WithCancel(ctx)
	defer recall()
	w.mu.Lock()
	target := w.target
	w.recall = recall
	s = signal{from: w, writes: w.writes}
	w.mu.Unlock()
	told, err = w.node.Watch(call, token, target)
	s.reached = told.Reached
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recall = nil
	recalled = call.Err() != nil && (err == nil || errors.Is(err, context.Canceled))
	w.waiting = err == nil || recalled
	return told, s, recalled, err
}

// signal waits until the loop takes it: between two cycles.
func (w *watcher) signal(ctx context.Context, s signal) bool {
	select {
	case w.moved <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// noteWrite says that the last cycle has changed slots of the node.
func (w *watcher) noteWrite() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
}

func (w *watcher) wroteSince(writes int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes != writes
}

// aim names the replay position to wait for. A call that waits for none, or for
// another, is called back.
func (w *watcher) aim(target cluster.Opt[cluster.LSN]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target == target {
		return
	}
	w.target = target
	if target.OK && w.recall != nil {
		w.recall()
	}
}

func (w *watcher) works() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting && !w.hasEnded()
}

func (w *watcher) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// stop ends the watcher and waits for it.
func (w *watcher) stop() {
	w.end()
	<-w.ended
}

// unable is how long a server that lacks the procedure, or the right to call it,
// is left in peace: each try is an error in its log.
func unable(err error) time.Duration {
	var why reasoned
	if errors.As(err, &why) {
		switch plan.Reason(why.Reason()) {
		case plan.ReasonExtensionUnavailable, plan.ReasonNoPrivilege:
			return watchUnable
		}
	}
	return 0
}

// pacer is the loop's timer: when the next cycle is due.
type pacer struct {
	*time.Timer
	ended time.Time // of the last cycle
	due   time.Time
}

func newPacer() *pacer { return &pacer{Timer: time.NewTimer(0), due: time.Now()} }

// next makes a cycle due after d, counted from now, the end of one.
func (p *pacer) next(d time.Duration) {
	p.ended = time.Now()
	p.due = p.ended.Add(d)
	p.Reset(d)
}

// soon makes it due gap after the last one ended, if it is not due sooner.
func (p *pacer) soon(gap time.Duration) {
	at := p.ended.Add(gap)
	if !at.Before(p.due) {
		return
	}
	p.due = at
	p.Reset(max(time.Until(at), 0))
}
