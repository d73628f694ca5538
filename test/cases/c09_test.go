package cases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C09: a mirror is never beyond what the consumer has confirmed to the primary,
// whoever is restarted. A consumer that goes on from its own position misses
// nothing and gets nothing again.
func TestC09MirrorNeverBeyondConsumer(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.OK(lab.SetupLoad(s.Ctx, s.A))
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('cdc', 'pgoutput')")
	w := &watched{scene: s, consumer: &lab.Consumer{Slot: "cdc", Deliveries: lab.NewDeliveries()}}
	w.connect(s.A)
	load := lab.StartLoad(s.Ctx, s.A, lab.LoadOptions{Seed: 9, Short: 1, Nested: 1, Long: 1, Checkpoints: 300 * time.Millisecond})
	s.RunEvery(100*time.Millisecond, "")
	s.Safe([]string{"cdc"})
	stopSampling := w.sample()
	w.moves()

	s.OK(w.last().Kill())
	s.Cycles(5) // the primary writes on, the mirror must not
	w.connect(s.A)
	w.moves()
	s.StopDaemon()
	s.RunEvery(100*time.Millisecond, "")
	w.moves()
	for _, stop := range []func(context.Context) error{s.A.StopFast, s.A.StopImmediate} {
		s.OK(stop(s.Ctx))
		if err := w.last().Err(); !errors.Is(err, lab.ErrServerGone) {
			t.Fatalf("the consumer ended with %v", err)
		}
		s.OK(s.A.Start(s.Ctx))
		w.connect(s.A)
		w.moves()
	}

	s.StopDaemon()
	mirror := s.Slot(s.B, "cdc").Confirmed
	stopSampling()
	w.sentinel(load)
	s.OK(load.Stop(s.Ctx))
	s.OK(w.last().Stop())
	position := w.last().Confirmed()
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)

	w.owes(mirror, position)
	w.consumer.From = position
	load.Retarget(s.B)
	w.connect(s.B)
	sentinel := w.sentinel(load)
	truth, err := lab.ReadTruth(s.Ctx, s.B, load, 0)
	s.OK(err)
	bounds := lab.Bounds{Positions: map[int]cluster.LSN{w.last().Number(): position}}
	if account := w.consumer.Deliveries.Account("cdc", truth, bounds, w.consumer.Deliveries); !account.Clean() || account.Gone > 0 {
		t.Errorf("after row %s: %+v", sentinel, account)
	}
}

// watched is a consumer whose confirmations are compared with the mirror.
type watched struct {
	scene    *harness.Scene
	consumer *lab.Consumer

	mu      sync.Mutex
	streams []*lab.Stream
}

func (w *watched) connect(n *lab.Node) {
	w.scene.T.Helper()
	stream, err := w.consumer.Start(w.scene.Ctx, n)
	w.scene.OK(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams = append(w.streams, stream)
}

func (w *watched) last() *lab.Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.streams[len(w.streams)-1]
}

// moves waits until the mirror has gone on.
func (w *watched) moves() {
	w.scene.T.Helper()
	before := w.scene.Slot(w.scene.B, "cdc").Confirmed
	w.scene.Wait("the mirror to move", func() (bool, string) {
		at := w.scene.Slot(w.scene.B, "cdc").Confirmed
		return at > before, "it is at " + at.String()
	})
}

// sentinel writes a row and waits until it has come: all before it has too.
func (w *watched) sentinel(load *lab.Load) lab.RowID {
	w.scene.T.Helper()
	id, err := load.Sentinel(w.scene.Ctx)
	w.scene.OK(err)
	w.scene.OK(w.consumer.Deliveries.WaitRow(w.scene.Ctx, w.last(), id))
	return id
}

// sample compares every 100 ms until the function that it gives is called.
// The mirror is read first: what it has was confirmed before. A primary that is
// down, or that a crash took back, reports less than the consumer confirmed.
func (w *watched) sample() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	var samples int
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		var highest cluster.LSN
		for {
			if mirror, err := confirmedAt(w.scene.Ctx, w.scene.B); err == nil {
				primary, _ := confirmedAt(w.scene.Ctx, w.scene.A)
				highest = max(highest, primary, w.confirmed())
				if samples++; mirror > highest {
					w.scene.T.Errorf("the mirror was at %s when the primary had reported %s at most", mirror, highest)
				}
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(done)
		<-ended
		if samples == 0 {
			w.scene.T.Error("the scene is not set: nothing was sampled")
		}
	})
	w.scene.T.Cleanup(stop)
	return stop
}

func (w *watched) confirmed() cluster.LSN {
	w.mu.Lock()
	defer w.mu.Unlock()
	var highest cluster.LSN
	for _, stream := range w.streams {
		highest = max(highest, stream.Confirmed())
	}
	return highest
}

func confirmedAt(ctx context.Context, n *lab.Node) (cluster.LSN, error) {
	var text string
	if err := n.QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'cdc'").Scan(&text); err != nil {
		return 0, err
	}
	return cluster.ParseLSN(text)
}

// owes wants what the promoted slot would send again to lie between the mirror
// and the consumer's position, and to be something.
func (w *watched) owes(mirror, position cluster.LSN) {
	w.scene.T.Helper()
	got := w.scene.Text(w.scene.B, fmt.Sprintf(`SELECT format('%%s before, %%s again', count(*) FILTER (WHERE lsn < '%s'), count(*) FILTER (WHERE lsn <= '%s') > 0)
		FROM pg_logical_slot_peek_binary_changes('cdc', NULL, NULL, 'proto_version', '1', 'publication_names', 'lab') WHERE get_byte(data, 0) = ascii('C')`, mirror, position))
	if got != "0 before, t again" {
		w.scene.T.Errorf("commits from the mirror's %s to the consumer's %s: %s", mirror, position, got)
	}
}
