package lab

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const insertRow = "INSERT INTO lab_rows (writer, tx, part, body) VALUES ($1, $2, $3, $4)"

// commit runs a transaction's work and records its rows only when the server
// has acknowledged the commit. work gives the number of rows that remain.
func (w *writer) commit(ctx context.Context, conn *pgx.Conn, work func(tx pgx.Tx) (int, error)) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	rows, err := work(tx)
	if err != nil {
		return errors.Join(err, ignoreClosed(tx.Rollback(ctx), conn))
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	w.load.acknowledge(txID{w.id, w.tx}, rows)
	return nil
}

// ignoreClosed drops the error of a rollback on a session that is gone: the
// error that brought it there says more.
func ignoreClosed(err error, conn *pgx.Conn) error {
	if conn.IsClosed() {
		return nil
	}
	return err
}

// executor is a transaction, or a connection in the midst of one.
type executor interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

func (w *writer) insert(ctx context.Context, tx executor, part int) error {
	id := RowID{Writer: w.id, Tx: w.tx, Part: int32(part)}
	_, err := tx.Exec(ctx, insertRow, id.Writer, id.Tx, id.Part, body(id, ""))
	return err
}

// short: one to three rows.
func short(ctx context.Context, w *writer, conn *pgx.Conn) error {
	w.pause(ctx, w.between(0, 8*time.Millisecond))
	return w.commit(ctx, conn, func(tx pgx.Tx) (int, error) {
		rows := 1 + w.rng.IntN(3)
		for part := range rows {
			if err := w.insert(ctx, tx, part); err != nil {
				return 0, err
			}
		}
		return rows, nil
	})
}

// nested: up to eight savepoints, some rolled back, with a row inside each and
// one after each. Every subtransaction has a transaction id of its own, which
// decoding must tie to its parent.
func nested(ctx context.Context, w *writer, conn *pgx.Conn) error {
	w.pause(ctx, w.between(0, 30*time.Millisecond))
	return w.commit(ctx, conn, func(tx pgx.Tx) (int, error) {
		return w.savepoints(ctx, tx, 1+w.rng.IntN(8), 0)
	})
}

func (w *writer) savepoints(ctx context.Context, tx pgx.Tx, count int, hold time.Duration) (int, error) {
	rows := 0
	for i := range count {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return 0, err
		}
		if err := w.insert(ctx, inner, 2*i); err != nil {
			return 0, err
		}
		if hold > 0 {
			w.pause(ctx, hold/time.Duration(count))
		}
		if w.rng.IntN(3) == 0 {
			err = inner.Rollback(ctx)
		} else {
			rows++
			err = inner.Commit(ctx)
		}
		if err != nil {
			return 0, err
		}
		if err := w.insert(ctx, tx, 2*i+1); err != nil {
			return 0, err
		}
		rows++
	}
	return rows, nil
}

// long: a transaction of 0.5 to 2 s with rows at its beginning, in its middle
// and at its end; a third of them with savepoints. A stopping load cuts the
// waiting short, and the rows are still all there.
func long(ctx context.Context, w *writer, conn *pgx.Conn) error {
	hold := w.between(500*time.Millisecond, 2*time.Second)
	rows := 2 + w.rng.IntN(3)
	return w.commit(ctx, conn, func(tx pgx.Tx) (int, error) {
		if w.rng.IntN(3) == 0 {
			return w.savepoints(ctx, tx, rows, hold)
		}
		for part := range rows {
			if part > 0 {
				w.pause(ctx, hold/time.Duration(rows-1))
			}
			if err := w.insert(ctx, tx, part); err != nil {
				return 0, err
			}
		}
		return rows, nil
	})
}

// changing: mostly rows in a table whose columns come and go, with every fifth
// step a change of catalogs.
func changing(ctx context.Context, w *writer, conn *pgx.Conn) error {
	w.pause(ctx, w.between(0, 40*time.Millisecond))
	switch w.rng.IntN(20) {
	case 0, 1:
		return w.alter(ctx, conn, w.addColumn)
	case 2:
		return w.alter(ctx, conn, w.dropColumn)
	case 3:
		return w.alter(ctx, conn, w.rewrite)
	case 4:
		// A killed server may have left the table of the last time.
		for _, sql := range []string{"DROP TABLE IF EXISTS lab_churn", "CREATE TABLE lab_churn (a int, b text)", "DROP TABLE lab_churn"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	case 5:
		for _, catalog := range []string{"pg_class", "pg_attribute", "pg_type"} {
			if _, err := conn.Exec(ctx, "VACUUM pg_catalog."+catalog); err != nil {
				return err
			}
		}
		return nil
	default:
		return w.alter(ctx, conn, func(context.Context, pgx.Tx, []string) error { return nil })
	}
}

// alter changes the table, then writes a row with its newest column, in one transaction.
func (w *writer) alter(ctx context.Context, conn *pgx.Conn, change func(context.Context, pgx.Tx, []string) error) error {
	return w.commit(ctx, conn, func(tx pgx.Tx) (int, error) {
		columns, err := w.columns(ctx, tx)
		if err != nil {
			return 0, err
		}
		if err := change(ctx, tx, columns); err != nil {
			return 0, err
		}
		if columns, err = w.columns(ctx, tx); err != nil {
			return 0, err
		}
		id := RowID{Writer: w.id, Tx: w.tx}
		if len(columns) == 0 {
			_, err = tx.Exec(ctx, "INSERT INTO lab_changing (writer, tx, part, body, num) VALUES ($1, $2, $3, $4, 1)",
				id.Writer, id.Tx, id.Part, body(id, ""))
			return 1, err
		}
		newest := columns[len(columns)-1]
		_, err = tx.Exec(ctx, "INSERT INTO lab_changing (writer, tx, part, body, num, "+newest+") VALUES ($1, $2, $3, $4, 1, $5)",
			id.Writer, id.Tx, id.Part, body(id, newest), id.Tx)
		return 1, err
	})
}

// columns asks the server, not memory: a failover may have undone the last change.
func (w *writer) columns(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT attname::text FROM pg_attribute
		WHERE attrelid = 'lab_changing'::regclass AND attname LIKE 'v\_%' AND NOT attisdropped ORDER BY attnum`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (w *writer) addColumn(ctx context.Context, tx pgx.Tx, columns []string) error {
	if len(columns) > 5 {
		return nil
	}
	name := "v_" + strconv.Itoa(int(w.id)) + "_" + strconv.FormatInt(w.tx, 10)
	_, err := tx.Exec(ctx, "ALTER TABLE lab_changing ADD COLUMN "+name+" bigint")
	return err
}

func (w *writer) dropColumn(ctx context.Context, tx pgx.Tx, columns []string) error {
	if len(columns) < 2 {
		return nil
	}
	_, err := tx.Exec(ctx, "ALTER TABLE lab_changing DROP COLUMN "+columns[0])
	return err
}

// rewrite gives the table a new file, which old catalogs know nothing of.
func (w *writer) rewrite(ctx context.Context, tx pgx.Tx, _ []string) error {
	kind := []string{"int", "bigint", "numeric"}[w.rng.IntN(3)]
	_, err := tx.Exec(ctx, "ALTER TABLE lab_changing ALTER COLUMN num TYPE "+kind)
	return err
}

// message: a logical message that is no transaction's; it counts from the
// moment its record stands in the WAL.
func message(ctx context.Context, w *writer, conn *pgx.Conn) error {
	w.pause(ctx, w.between(0, 40*time.Millisecond))
	key := txID{w.id, w.tx}.String()
	var text string
	if err := conn.QueryRow(ctx, "SELECT pg_logical_emit_message(false, 'lab', $1::text)::text", key).Scan(&text); err != nil {
		return err
	}
	end, err := cluster.ParseLSN(text)
	if err != nil {
		return err
	}
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	w.load.messages = append(w.load.messages, Message{Key: key, Node: w.node, End: end})
	return nil
}

// checkpoints writes checkpoints: with each comes a record of the running
// transactions, at which decoders leave snapshots and slots move restart_lsn.
func checkpoints(mean time.Duration) action {
	return func(ctx context.Context, w *writer, conn *pgx.Conn) error {
		w.pause(ctx, w.between(0, 2*mean))
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	}
}
