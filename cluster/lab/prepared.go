package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// prepared: a transaction of two phases, with a while between them. What a dead
// server left prepared is ended first, one way or the other: it would hold its
// locks for ever.
func prepared(ctx context.Context, w *writer, conn *pgx.Conn) error {
	if err := w.endPrepared(ctx, conn); err != nil {
		return err
	}
	w.pause(ctx, w.between(0, 30*time.Millisecond))
	if w.stopping() {
		return nil
	}
	rows := 1 + w.rng.IntN(3)
	name := PreparedName(w.id, w.tx)
	if err := w.prepare(ctx, conn, name, rows); err != nil {
		_, rollback := conn.Exec(ctx, "ROLLBACK")
		return errors.Join(err, ignoreClosed(rollback, conn))
	}
	w.pause(ctx, w.between(0, 300*time.Millisecond))
	if w.rng.IntN(8) == 0 {
		_, err := conn.Exec(ctx, "ROLLBACK PREPARED '"+name+"'")
		return err
	}
	if _, err := conn.Exec(ctx, "COMMIT PREPARED '"+name+"'"); err != nil {
		return err
	}
	w.load.acknowledge(txID{w.id, w.tx}, rows)
	return nil
}

func (w *writer) prepare(ctx context.Context, conn *pgx.Conn, name string, rows int) error {
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	for part := range rows {
		if err := w.insert(ctx, conn, part); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "PREPARE TRANSACTION '"+name+"'")
	return err
}

// RollbackPrepared ends what a dead primary has left prepared, before the load's own
// writers come to do so: a new slot would wait for it.
func (n *Node) RollbackPrepared(ctx context.Context) error {
	names, err := n.DB("").Strings(ctx, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
	for _, name := range names {
		err = errors.Join(err, n.Exec(ctx, "ROLLBACK PREPARED '"+name+"'"))
	}
	return err
}

// PreparedName is the name under which a writer prepares a transaction.
func PreparedName(writer int32, tx int64) string { return fmt.Sprintf("lab_%d_%d", writer, tx) }

func (w *writer) endPrepared(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, $1)", fmt.Sprintf("lab_%d_", w.id))
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		end := "COMMIT PREPARED"
		if w.rng.IntN(2) == 0 {
			end = "ROLLBACK PREPARED"
		}
		if _, err := conn.Exec(ctx, end+" '"+name+"'"); err != nil {
			return err
		}
	}
	return nil
}
