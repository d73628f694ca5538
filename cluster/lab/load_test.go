package lab

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// onePrimary has the load's tables and the slot "s".
func onePrimary(t *testing.T) (context.Context, *Node) {
	t.Helper()
	ctx, c := newLab(t)
	a := must(c.AddPrimary(ctx, "a"))(t)
	ok(t, SetupLoad(ctx, a))
	ok(t, a.Exec(ctx, "SELECT pg_create_logical_replication_slot('s', 'pgoutput')"))
	return ctx, a
}

func confirmed(ctx context.Context, t *testing.T, n *Node) cluster.LSN {
	t.Helper()
	var text string
	ok(t, n.QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 's'").Scan(&text))
	return must(cluster.ParseLSN(text))(t)
}

// All kinds of writers at work, the consumer cut and resumed: nothing is lost,
// something came twice. Then a loss is planted by moving the slot over a row.
func TestLoadConsumerOracle(t *testing.T) {
	ctx, a := onePrimary(t)
	deliveries := NewDeliveries()
	// It confirms late, so that being cut makes duplicates.
	consumer := &Consumer{Slot: "s", Deliveries: deliveries, ConfirmEvery: time.Hour}
	stream := must(consumer.Start(ctx, a))(t)
	load := StartLoad(ctx, a, DefaultLoad(1))
	ok(t, poll(ctx, 10*time.Millisecond, "rows of all writers", func() (bool, error) {
		return everyWriter(load), nil
	}))
	ok(t, stream.Kill())
	positions := map[int]cluster.LSN{0: 0, 1: confirmed(ctx, t, a)}
	before := deliveries.Count()

	consumer.ConfirmEvery = 0
	stream = must(consumer.Start(ctx, a))(t)
	ok(t, load.Stop(ctx))
	sentinel := must(load.Sentinel(ctx))(t)
	ok(t, deliveries.WaitRow(ctx, stream, sentinel))
	ok(t, stream.Stop())
	if got := confirmed(ctx, t, a); got != stream.Confirmed() {
		t.Errorf("the slot is at %s after the stop, the consumer confirmed %s", got, stream.Confirmed())
	}

	truth := must(ReadTruth(ctx, a, load, 0))(t)
	account := deliveries.Account("s", truth, Bounds{Positions: positions}, deliveries)
	if !account.Clean() || account.Committed == 0 || account.Delivered != account.Committed ||
		(account.Messages > 0) != a.cluster.decodesMessages() {
		t.Errorf("the account is %+v", account)
	}
	if account.Duplicated != before || before == 0 {
		t.Errorf("%d rows came twice, want the %d that nobody confirmed", account.Duplicated, before)
	}
	if got := load.Acknowledged(); got != account.Committed {
		t.Errorf("%d rows were acknowledged, %d are committed", got, account.Committed)
	}

	lost := must(load.Sentinel(ctx))(t)
	ok(t, a.Exec(ctx, "SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())"))
	last := must(load.Sentinel(ctx))(t)
	stream = must(consumer.Start(ctx, a))(t)
	ok(t, deliveries.WaitRow(ctx, stream, last))
	ok(t, stream.Stop())
	account = deliveries.Account("s", must(ReadTruth(ctx, a, load, 0))(t), Bounds{}, deliveries)
	if len(account.Lost) != 1 || account.Lost[0] != lost {
		t.Errorf("lost are %v, want the planted %s", account.Lost, lost)
	}
}

// everyWriter reports whether each of the default load's writers has committed.
func everyWriter(load *Load) bool {
	load.mu.Lock()
	defer load.mu.Unlock()
	rows, messages := map[int32]bool{}, len(load.messages) > 0
	for tx := range load.acknowledged {
		rows[tx.writer] = true
	}
	return len(rows) == 8 && messages == load.target.Load().cluster.decodesMessages()
}

func TestStreamEndsWithItsServer(t *testing.T) {
	ctx, a := onePrimary(t)
	consumer := &Consumer{Slot: "s", Deliveries: NewDeliveries()}
	stream := must(consumer.Start(ctx, a))(t)
	load := StartLoad(ctx, a, LoadOptions{Seed: 1, Short: 1})
	ok(t, a.Kill(ctx))
	if err := stream.Err(); !errors.Is(err, ErrServerGone) {
		t.Errorf("the stream ends with %v, want ErrServerGone", err)
	}
	if _, err := consumer.Start(ctx, a); err == nil {
		t.Error("streaming from a dead server is no error")
	}
	ok(t, a.Start(ctx))
	// The writer is back by itself; a table that is gone is another matter than a server.
	sentinel := must(load.Sentinel(ctx))(t)
	stream = must(consumer.Start(ctx, a))(t)
	ok(t, consumer.Deliveries.WaitRow(ctx, stream, sentinel))
	ok(t, stream.Stop())
	ok(t, a.Exec(ctx, "DROP TABLE lab_rows"))
	<-load.Failed()
	if err := load.Stop(ctx); err == nil {
		t.Error("a writer whose table is gone does not fail")
	}
	other := &Consumer{Slot: "nobody", Deliveries: NewDeliveries()}
	if _, err := other.Start(ctx, a); err == nil || errors.Is(err, ErrServerGone) {
		t.Errorf("a slot that is not there gives %v, want the server's refusal", err)
	}
}
