package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// resume lets writers and consumer go on with the promoted node. A slot that is
// not there is the report's matter: the round is counted to its end.
func (r *round) resume(ctx context.Context) error {
	r.report.Mirrored = true
	for _, slot := range []string{BusySlot, IdleSlot} {
		position, err := r.position(ctx, slot)
		if errors.Is(err, pgx.ErrNoRows) {
			r.report.Mirrored = false
			verdict, why := r.last.verdict(slot, r.primary.name)
			r.fail("resuming", fmt.Errorf("slot %q is not on the promoted node %q, where it was %s (%s)", slot, r.primary.name, verdict, why))
			r.refused = r.refused || slot == IdleSlot && verdict != safe
			continue
		}
		if err != nil {
			return err
		}
		r.bounds[slot] = map[int]cluster.LSN{}
		if slot == BusySlot {
			r.bounds[slot][r.stream.Number()+1] = position
		} else {
			r.bounds[slot][0] = position
		}
	}
	r.load.Retarget(r.primary)
	stream, err := r.busy.Start(ctx, r.primary)
	if err != nil {
		r.fail("resuming the consumer", err)
		return ctx.Err()
	}
	r.stream = stream
	err = poll(ctx, time.Millisecond, "the first row after the promotion", func() (bool, error) {
		at, came := r.busy.Deliveries.FirstRow(stream.Number())
		if came {
			r.report.FirstRow = at.Sub(r.promoted)
			return true, nil
		}
		select {
		case <-stream.Done():
			return false, fmt.Errorf("the consumer ended: %w", exitError(stream.Err()))
		default:
			return false, nil
		}
	})
	if err != nil {
		r.fail("resuming the consumer", err)
		return ctx.Err()
	}
	r.Progress(fmt.Sprintf("the consumer goes on from slot %q on %s: first row %s after the promotion",
		BusySlot, r.primary.name, r.report.FirstRow.Round(time.Millisecond)))
	return ctx.Err()
}

// position is a slot's confirmed_flush_lsn; pgx.ErrNoRows where there is no slot.
func (r *round) position(ctx context.Context, slot string) (cluster.LSN, error) {
	var text string
	err := r.primary.QueryRow(ctx, "SELECT coalesce(confirmed_flush_lsn, '0/0')::text FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&text)
	if err != nil {
		return 0, fmt.Errorf("looking for slot %q: %w", slot, err)
	}
	return cluster.ParseLSN(text)
}

// followAll leads the other standbys after the promoted node and waits until
// they are failover candidates again.
func (r *round) followAll(ctx context.Context) error {
	var err error
	if r.report.Fork, err = r.primary.Fork(ctx); err != nil {
		return err
	}
	for _, node := range r.standbys {
		if err := r.follow(ctx, node); err != nil {
			return err
		}
	}
	if len(r.standbys) > 0 && r.report.Mirrored {
		if err := r.waitSafe(ctx, []string{BusySlot, IdleSlot}, r.standbys); err != nil {
			r.fail("waiting for the other standbys after the promotion", err)
			return ctx.Err()
		}
		r.report.SafeAgain = time.Since(r.promoted)
		r.Progress(fmt.Sprintf("both slots are SAFE on the other standbys, %s after the promotion", r.report.SafeAgain.Round(time.Millisecond)))
	}
	return r.underOrNoted(ctx, r.choices.after)
}

// underOrNoted is watch, with what ends the consumer as the report's matter.
func (r *round) underOrNoted(ctx context.Context, d time.Duration) error {
	select {
	case <-r.stream.Done(): // noted already, or drain will
		return nil
	default:
	}
	err := r.watch(ctx, d)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.fail("the load on the promoted node", err)
	return nil
}

func (r *round) follow(ctx context.Context, node *Node) error {
	r.Progress(fmt.Sprintf("%s follows %s", node.name, r.primary.name))
	received, err := node.ReceivedLSN(ctx)
	if err != nil {
		return err
	}
	if received <= r.report.Fork {
		return node.Follow(ctx, r.primary)
	}
	// A standby that was not SAFE had more than the one that was.
	if err := node.StopFast(ctx); err != nil {
		return err
	}
	if err := node.Rewind(ctx, r.primary); err != nil {
		return err
	}
	return node.Start(ctx)
}

// drain stops the writers and reads both slots to their ends.
func (r *round) drain(ctx context.Context) error {
	r.Progress("stopping the writers and reading both slots to their ends")
	if err := r.load.Stop(ctx); err != nil {
		return err
	}
	sentinel, err := r.load.Sentinel(ctx)
	if err != nil {
		return err
	}
	r.fail("reading to the end", r.busy.Deliveries.WaitRow(ctx, r.stream, sentinel))
	if err := r.stream.Stop(); !errors.Is(err, ErrServerGone) {
		r.fail("stopping the consumer", err)
	}
	r.fail("the controller", r.daemon.Stop(ctx))
	return r.drainIdle(ctx, sentinel)
}

func (r *round) drainIdle(ctx context.Context, sentinel RowID) error {
	if r.refused {
		return nil
	}
	idle := &Consumer{Slot: IdleSlot, Deliveries: NewDeliveries()}
	r.idle = idle.Deliveries
	if stream, err := idle.Start(ctx, r.primary); err != nil {
		r.fail("reading the idle slot", err)
	} else {
		r.fail("reading the idle slot", r.idle.WaitRow(ctx, stream, sentinel))
		r.fail("reading the idle slot", stream.Stop())
	}
	return ctx.Err()
}

func (r *round) account(ctx context.Context) error {
	truth, err := ReadTruth(ctx, r.primary, r.load, r.report.Fork)
	if err != nil {
		return err
	}
	r.report.Acknowledged = r.load.Acknowledged()
	r.report.Unreplicated = r.load.Unreplicated(truth)
	r.report.Accounts = []Account{
		r.busy.Deliveries.Account(BusySlot, truth, Bounds{Positions: r.bounds[BusySlot]}, r.busy.Deliveries),
	}
	// A slot that was refused fails loudly: its consumer cannot lose a row without knowing.
	if !r.refused {
		bounds := Bounds{From: r.idleFrom, Positions: r.bounds[IdleSlot]}
		r.report.Accounts = append(r.report.Accounts, r.idle.Account(IdleSlot, truth, bounds, r.busy.Deliveries))
	}
	return nil
}
