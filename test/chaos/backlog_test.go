package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// backlog is how many bytes of WAL a slot may owe before its consumer reads on,
// whatever its kind: what a proof costs must not grow with the length of a run. It is
// half a minute of the load, and more on a slow machine.
const backlog = 24 << 20

// keepUp has those slots move on that owe too much.
func (w *world) keepUp() {
	ctx, cancel := w.within(patience)
	defer cancel()
	owes, err := w.owes(ctx)
	if err != nil {
		w.say("what the slots owe is not known now: %v", err)
		return
	}
	for slot, bytes := range owes {
		r := w.reader(slot)
		if r != nil {
			_ = r.arrive(ctx, w.primary.Load()) // it tries again
		}
		switch {
		case r == nil && bytes > backlog:
			w.advance(ctx, slot)
		case r == nil:
		case bytes > backlog:
			r.hurry()
		case bytes < backlog/8:
			r.rest()
		}
	}
}

// owes is how many bytes of WAL lie behind each slot of the primary.
func (w *world) owes(ctx context.Context) (map[string]int64, error) {
	conn, err := w.primary.Load().Connect(ctx, "", "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }() // it was only read from
	rows, err := conn.Query(ctx, `SELECT slot_name, (pg_current_wal_lsn() - confirmed_flush_lsn)::bigint FROM pg_replication_slots
		WHERE slot_type = 'logical' AND NOT temporary AND confirmed_flush_lsn IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	owes := map[string]int64{}
	var slot string
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&slot, &bytes}, func() error {
		owes[slot] = bytes
		return nil
	})
	return owes, err
}

// advance moves a slot on that no consumer reads.
func (w *world) advance(ctx context.Context, slot string) {
	p := w.primary.Load()
	db := p.DB("")
	var err error
	if slot == elsewhere {
		db = p.DB(w.database())
		// First: a standby with the slot's new position has replayed it then.
		err = db.Exec(ctx, "TRUNCATE t")
	}
	if err == nil {
		err = db.Exec(ctx, "SELECT pg_replication_slot_advance('"+slot+"', pg_current_wal_lsn())")
	}
	if err = errors.Join(err, w.noteMoved(ctx, p, slot)); err != nil {
		w.say("  moving slot %s on: %v", slot, err)
	}
}

// noteMoved notes where a slot was made or moved to by hand: no mirror of it may be
// further than that and what its consumer has confirmed.
func (w *world) noteMoved(ctx context.Context, p *lab.Node, slot string) error {
	var text string
	err := p.QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&text)
	if err != nil {
		return fmt.Errorf("reading the position of slot %s: %w", slot, err)
	}
	at, err := cluster.ParseLSN(text)
	if err != nil {
		return fmt.Errorf("reading the position of slot %s: %w", slot, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved[slot] = max(w.moved[slot], at)
	return nil
}

// sentinel commits a row of its own, and gives a position behind it.
func (w *world) sentinel(ctx context.Context, n *lab.Node) (lab.RowID, cluster.LSN, error) {
	last, err := w.load.SentinelOn(ctx, n)
	if err != nil {
		return last, 0, err
	}
	end, err := n.CurrentLSN(ctx)
	return last, end, err
}

// readTo waits until a row has come that ended before a position. A stream may take
// as long as it gets on; one that does not, for all of patience, is stuck. current
// gives the stream of now, nil for none, and whether another follows when it ends.
func (w *world) readTo(last lab.RowID, end cluster.LSN, current func() (*lab.Stream, bool)) error {
	var progress lab.Progress
	var at cluster.LSN
	for ; w.ctx.Err() == nil; w.sleep(20 * time.Millisecond) {
		stream, another := current()
		if stream != nil {
			ended := isDone(stream) // before it is asked for what came
			came, err := stream.Received(last, end)
			if came || err != nil {
				return err
			}
			if ended && !another {
				return fmt.Errorf("the stream ended at %s: %w", stream.Reached(), stream.Err())
			}
			at = stream.Reached()
		}
		if quiet := progress.Quiet(at, time.Now()); quiet > patience {
			return fmt.Errorf("it is stuck: at %s, and nothing more came for %s", at, quiet.Round(time.Second))
		}
	}
	return w.ctx.Err()
}

func isDone(stream *lab.Stream) bool {
	select {
	case <-stream.Done():
		return true
	default:
		return false
	}
}
