package lab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Delivery is one transaction as a consumer received it, whole or not.
type Delivery struct {
	Stream int    // which connection
	Node   string // and to which node
	Writer int32
	Tx     int64
	Parts  []int32     // the rows, in the order in which they came
	Commit cluster.LSN // where the commit record begins: what a slot compares with confirmed_flush_lsn
	End    cluster.LSN // where it ends: what a consumer confirms
	At     time.Time
}

func (d Delivery) id() txID { return txID{d.Writer, d.Tx} }

// Deliveries is all that the connections of one consumer received.
type Deliveries struct {
	mu       sync.Mutex
	streams  []string // the node of each
	all      []Delivery
	messages map[string]int
	problems []string
}

// NewDeliveries is empty.
func NewDeliveries() *Deliveries { return &Deliveries{messages: map[string]int{}} }

func (d *Deliveries) begin(node string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams = append(d.streams, node)
	return len(d.streams) - 1
}

func (d *Deliveries) add(delivery Delivery) {
	if len(delivery.Parts) == 0 {
		return // a transaction without rows of the load
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, delivery)
}

func (d *Deliveries) message(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.messages[key]++
}

func (d *Deliveries) problem(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = append(d.problems, text)
}

// Count is how many rows were received, again and again counted again.
func (d *Deliveries) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	rows := 0
	for _, delivery := range d.all {
		rows += len(delivery.Parts)
	}
	return rows
}

// FirstRow is when a stream received its first row; false when it has none yet.
func (d *Deliveries) FirstRow(stream int) (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, delivery := range d.all {
		if delivery.Stream == stream {
			return delivery.At, true
		}
	}
	return time.Time{}, false
}

// Has reports whether the transaction of a row was received.
func (d *Deliveries) Has(id RowID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.all) - 1; i >= 0; i-- {
		if d.all[i].id() == id.transaction() {
			return true
		}
	}
	return false
}

// WaitRow waits until the transaction of a row was received, or the stream ended.
func (d *Deliveries) WaitRow(ctx context.Context, stream *Stream, id RowID) error {
	what := fmt.Sprintf("row %s from slot %q", id, stream.consumer.Slot)
	return poll(ctx, 5*time.Millisecond, what, func() (bool, error) {
		if d.Has(id) {
			return true, nil
		}
		select {
		case <-stream.Done():
			return false, fmt.Errorf("the stream ended: %w", stream.Err())
		default:
			return false, nil
		}
	})
}
