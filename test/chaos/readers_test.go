package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// steadySlots live as long as everything; each has a consumer of its own kind.
var steadySlots = []struct {
	name    string
	confirm time.Duration
	away    time.Duration // between two short visits; 0: always there
	idle    bool          // reads only at a round's end
}{
	{name: "orders", confirm: 10 * time.Millisecond},
	{name: "audit", confirm: 700 * time.Millisecond},
	{name: "batch", confirm: 50 * time.Millisecond, away: 4 * time.Second},
	{name: "idle", confirm: 50 * time.Millisecond, idle: true},
}

func steady() []string {
	var names []string
	for _, s := range steadySlots {
		names = append(names, s.name)
	}
	return names
}

// reader is a slot's consumer. It goes on from where the slot stands, on whichever
// node is the primary, and never asks slotkeeper anything.
type reader struct {
	w       *world
	slot    string
	confirm time.Duration
	away    time.Duration
	cancel  context.CancelFunc
	ended   chan struct{}

	mu         sync.Mutex
	idle       bool // it does not read now
	nonstop    bool // it reads, whatever its kind: the round ends
	deliveries *lab.Deliveries
	stream     *lab.Stream
	confirmed  cluster.LSN // the highest that any of its streams confirmed
	refused    bool        // the slot was refused at a promotion: it may be missing
	lost       bool        // it was, in this round: made anew, it does not owe the whole round
	streams    int
}

func (w *world) startReaders() {
	for _, s := range steadySlots {
		ctx, cancel := context.WithCancel(w.ctx)
		r := &reader{w: w, slot: s.name, confirm: s.confirm, away: s.away, idle: s.idle, cancel: cancel, ended: make(chan struct{}), deliveries: lab.NewDeliveries()}
		w.readers = append(w.readers, r)
		go func() {
			defer close(r.ended)
			r.run(ctx)
		}()
	}
}

func (w *world) reader(slot string) *reader {
	for _, r := range w.readers {
		if r.slot == slot {
			return r
		}
	}
	return nil
}

// fresh has it note what comes from now on apart from what came before.
func (r *reader) fresh() {
	r.mu.Lock()
	r.deliveries, r.lost = lab.NewDeliveries(), false
	stream := r.stream
	r.mu.Unlock()
	if stream != nil {
		_ = stream.Kill() // it comes again
	}
}

func (r *reader) end() {
	r.cancel()
	<-r.ended
}

func (r *reader) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		reads := r.nonstop || !r.idle
		r.mu.Unlock()
		node := r.w.primary.Load()
		if reads && node != nil {
			r.visit(ctx, node)
		}
		r.mu.Lock()
		pause := 50 * time.Millisecond
		if r.away > 0 && !r.nonstop {
			pause = r.away
		}
		r.mu.Unlock()
		for end := time.Now().Add(pause); time.Now().Before(end) && ctx.Err() == nil && !r.hurried(pause); {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func (r *reader) hurried(pause time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nonstop && pause > 50*time.Millisecond
}

// visit is one connection, until it ends by itself or its time is over.
func (r *reader) visit(ctx context.Context, node *lab.Node) {
	r.mu.Lock()
	consumer := &lab.Consumer{Slot: r.slot, ConfirmEvery: r.confirm, Deliveries: r.deliveries}
	short := r.away > 0 && !r.nonstop
	r.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
	stream, err := consumer.Start(bounded, node)
	cancel()
	if err != nil {
		r.explain(ctx, node, err)
		return
	}
	if err := r.arrive(ctx, node); err != nil {
		_ = stream.Kill() // it comes again
		return
	}
	r.mu.Lock()
	r.stream = stream
	r.streams++
	if consumer.Deliveries != r.deliveries {
		short = true // a new round began meanwhile
	}
	r.mu.Unlock()
	over := make(<-chan time.Time)
	if short {
		over = time.After(time.Second)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r.keep(stream)
		if !short && r.resting() {
			short, over = true, time.After(0)
		}
		select {
		case <-tick.C:
			continue
		case <-stream.Done():
			err = stream.Err()
		case <-over:
			err = stream.Stop()
		case <-ctx.Done():
			err = stream.Kill()
		}
		r.keep(stream)
		r.explain(ctx, node, err)
		r.mu.Lock()
		r.stream = nil
		r.mu.Unlock()
		return
	}
}

// keep notes what the stream has confirmed: all that the slot may have moved past.
func (r *reader) keep(stream *lab.Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed = max(r.confirmed, stream.Confirmed())
}

// explain tells a server that went away from what must never come.
func (r *reader) explain(ctx context.Context, node *lab.Node, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, lab.ErrServerGone) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if node != r.w.primary.Load() {
		return // it was killed, and may be a standby by now
	}
	switch code(err) {
	case "", "57P01", "57P02", "57P03", "53300":
		return
	case "42704":
		r.missing(node)
		return
	}
	r.w.violate("the consumer of slot %s cannot go on on %s: %v", r.slot, node.Name(), err)
}

// missing makes the slot anew where its loss was told before the promotion; its
// consumer begins again, as it would by copying everything.
func (r *reader) missing(node *lab.Node) {
	r.mu.Lock()
	refused := r.refused
	r.mu.Unlock()
	if !refused {
		r.w.violate("slot %s is not on the primary %s, and nothing told of it", r.slot, node.Name())
	}
	r.renew(node)
}

// renew leaves the refusal in force until the slot is known to be there: its server
// may go away before it has answered.
func (r *reader) renew(node *lab.Node) {
	r.mu.Lock()
	r.lost = true
	r.deliveries = lab.NewDeliveries()
	r.mu.Unlock()
	if err := r.w.createSlot(node, r.slot); err != nil && code(err) != "42710" {
		return // the server went away; the next try comes soon
	}
	_ = r.arrive(r.w.ctx, node) // the next visit notes it
}

// arrive is told that the slot is there: made anew, it may be anywhere.
func (r *reader) arrive(ctx context.Context, node *lab.Node) error {
	r.mu.Lock()
	refused := r.refused
	r.mu.Unlock()
	if !refused {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := r.w.noteMoved(bounded, node, r.slot); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = false
	return nil
}

// drain reads to the row that was written last, whatever ends the streams meanwhile.
func (r *reader) drain(last lab.RowID, end cluster.LSN) error {
	r.hurry()
	err := r.w.readTo(last, end, func() (*lab.Stream, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.stream == nil || r.stream.Deliveries() != r.deliveries {
			return nil, true
		}
		return r.stream, true
	})
	if err != nil {
		return fmt.Errorf("reading slot %s to its end at %s: %w", r.slot, end, err)
	}
	return nil
}

// hurry has it read without a pause, until rest.
func (r *reader) hurry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nonstop = true
}

func (r *reader) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nonstop = false
}

// resting: a consumer of its kind is not connected now, unless for a short visit.
func (r *reader) resting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.nonstop && (r.idle || r.away > 0)
}

// account stops the load, reads every slot to its end, and compares what came with
// what is there.
func (w *world) account() {
	ctx, cancel := w.within(patience)
	defer cancel()
	p := w.primary.Load()
	if err := w.load.Stop(ctx); err != nil {
		w.violate("the load: %v", err)
	}
	w.talk.stop()
	last, err := w.load.Sentinel(ctx)
	w.must(err)
	end, err := p.CurrentLSN(ctx)
	w.must(err)
	var group sync.WaitGroup
	for _, r := range w.readers {
		group.Go(func() {
			if err := r.drain(last, end); err != nil {
				w.violate("%v", err)
			}
		})
	}
	group.Wait()
	ctx, cancel = w.within(patience) // reading took as long as it took
	defer cancel()
	fork, err := p.Fork(ctx)
	w.must(err)
	truth, err := lab.ReadTruth(ctx, p, w.load, fork)
	w.must(err)
	w.report.acknowledged += w.load.Acknowledged()
	w.report.unreplicated += w.load.Unreplicated(truth)
	for _, r := range w.readers {
		r.rest()
		w.settle(r, truth)
	}
	w.must(p.Exec(ctx, "TRUNCATE lab_rows, lab_changing"))
}

func (w *world) settle(r *reader, truth lab.Truth) {
	r.mu.Lock()
	deliveries, lost, streams := r.deliveries, r.lost, r.streams
	r.streams = 0
	r.mu.Unlock()
	a := deliveries.Account(r.slot, truth, lab.Bounds{}, deliveries)
	if lost {
		w.report.renewed++
		a.Lost = nil // of the time before it was made anew
	} else {
		w.report.committed += a.Committed
		w.report.delivered += a.Delivered
		w.report.duplicated += a.Duplicated
	}
	w.report.streams += streams
	w.report.lost += len(a.Lost)
	w.say("account of %s: %d rows committed, %d delivered, %d twice, %d lost, %d gone, %d streams, made anew %t",
		r.slot, a.Committed, a.Delivered, a.Duplicated, len(a.Lost), a.Gone, streams, lost)
	if len(a.Lost) > 0 {
		w.violate("slot %s lost %d rows: %v", r.slot, len(a.Lost), a.Lost[:min(20, len(a.Lost))])
	}
	for _, problem := range a.Problems[:min(5, len(a.Problems))] {
		w.violate("slot %s: %s", r.slot, problem)
	}
}
