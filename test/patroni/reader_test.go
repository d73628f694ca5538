//go:build patroni

package patroni

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// reader is the consumer of a slot of pgoutput: it looks for the leader by itself,
// streams from it, and begins again when that ends.
type reader struct {
	slot       string
	deliveries *lab.Deliveries
	end        context.CancelFunc
	work       sync.WaitGroup

	mu     sync.Mutex
	bounds map[int]cluster.LSN // confirmed_flush_lsn that each stream found
	last   error               // why it does not stream, or did not go on
}

// read begins to stream.
func (s *scene) read(slot string, confirmEvery time.Duration) *reader {
	s.T.Helper()
	ctx, end := context.WithCancel(s.Ctx)
	r := &reader{slot: slot, deliveries: lab.NewDeliveries(), end: end, bounds: map[int]cluster.LSN{}}
	r.work.Go(func() {
		for ctx.Err() == nil {
			r.note(r.stream(ctx, s.p, confirmEvery))
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	s.T.Cleanup(r.stop)
	return r
}

func (r *reader) stop() {
	r.end()
	r.work.Wait()
}

func (r *reader) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.last = err
	}
}

// trouble is what last kept it from streaming.
func (r *reader) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return "it streams"
	}
	return r.last.Error()
}

// stream goes on until the server goes away or the reader ends.
func (r *reader) stream(ctx context.Context, p *lab.Patroni, confirmEvery time.Duration) error {
	stream, err := r.open(ctx, p, confirmEvery)
	if err != nil {
		return err
	}
	select {
	case <-stream.Done():
		return stream.Err()
	case <-ctx.Done():
		return stream.Stop()
	}
}

// open starts a stream at the leader and notes where it found the slot.
func (r *reader) open(ctx context.Context, p *lab.Patroni, confirmEvery time.Duration) (*lab.Stream, error) {
	leader, err := p.Leader(ctx)
	if err != nil {
		return nil, err
	}
	var text string
	err = leader.Node().QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", r.slot).Scan(&text)
	if err != nil {
		return nil, err
	}
	position, err := cluster.ParseLSN(text)
	if err != nil {
		return nil, err
	}
	consumer := &lab.Consumer{Slot: r.slot, Deliveries: r.deliveries, ConfirmEvery: confirmEvery}
	stream, err := consumer.Start(ctx, leader.Node())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bounds[stream.Number()] = position
	return stream, nil
}

// visit reads a slot that nobody else reads up to a row that is written now, and
// gives that row.
func (s *scene) visit(r *reader, load *lab.Load) lab.RowID {
	s.T.Helper()
	sentinel, err := load.Sentinel(s.Ctx)
	s.OK(err)
	stream, err := r.open(s.Ctx, s.p, 0)
	s.OK(err)
	s.OK(r.deliveries.WaitRow(s.Ctx, stream, sentinel))
	if err := stream.Stop(); err != nil && !errors.Is(err, lab.ErrServerGone) {
		s.OK(err)
	}
	return sentinel
}

// connectLeader opens a session with the member that leads.
func connectLeader(ctx context.Context, p *lab.Patroni) (*pgx.Conn, error) {
	leader, err := p.Leader(ctx)
	if err != nil {
		return nil, err
	}
	return leader.Node().Connect(ctx, "", "")
}
