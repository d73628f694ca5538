package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectTimeout bounds one connection: a frozen server's kernel still takes
// the connection and then nobody answers.
const connectTimeout = 5 * time.Second

// Connect opens a session; "" stands for postgres in both. The caller closes it.
func (n *Node) Connect(ctx context.Context, dbname, user string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(n.Conninfo(dbname, user))
	if err != nil {
		return nil, fmt.Errorf("connecting to node %q: %w", n.name, err)
	}
	config.ConnectTimeout = connectTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to node %q: %w", n.name, err)
	}
	return conn, nil
}

// closeConn says goodbye within a moment; the session ends anyway.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing depends on a polite end
}

// DB is one database of a node. Each call opens a session of its own, as the
// superuser, so that nothing is left behind between calls.
type DB struct {
	node *Node
	name string
}

// DB names a database; "" is postgres.
func (n *Node) DB(name string) DB { return DB{node: n, name: name} }

// Exec runs statements in the database postgres: several, divided by
// semicolons, when there are no arguments.
func (n *Node) Exec(ctx context.Context, sql string, args ...any) error {
	return n.DB("").Exec(ctx, sql, args...)
}

// QueryRow asks for one row in the database postgres.
func (n *Node) QueryRow(ctx context.Context, sql string, args ...any) Row {
	return n.DB("").QueryRow(ctx, sql, args...)
}

// Exec runs statements: several, divided by semicolons, when there are no arguments.
func (d DB) Exec(ctx context.Context, sql string, args ...any) error {
	conn, err := d.node.Connect(ctx, d.name, "")
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if len(args) == 0 {
		_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	} else {
		_, err = conn.Exec(ctx, sql, args...)
	}
	if err != nil {
		return fmt.Errorf("running SQL on node %q: %w", d.node.name, err)
	}
	return nil
}

// Row is a query for one row that runs when it is scanned.
type Row struct {
	db   DB
	ctx  context.Context //nolint:containedctx // it lives for one expression: QueryRow(ctx, ...).Scan(...)
	sql  string
	args []any
}

// QueryRow asks for one row.
func (d DB) QueryRow(ctx context.Context, sql string, args ...any) Row {
	return Row{db: d, ctx: ctx, sql: sql, args: args}
}

// Scan runs the query and reads its first row; pgx.ErrNoRows when there is none.
func (r Row) Scan(dest ...any) error {
	conn, err := r.db.node.Connect(r.ctx, r.db.name, "")
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if err := conn.QueryRow(r.ctx, r.sql, r.args...).Scan(dest...); err != nil {
		return fmt.Errorf("querying node %q: %w", r.db.node.name, err)
	}
	return nil
}

// Strings gives the one text column of a query's rows.
func (d DB) Strings(ctx context.Context, sql string, args ...any) ([]string, error) {
	conn, err := d.node.Connect(ctx, d.name, "")
	if err != nil {
		return nil, err
	}
	defer closeConn(conn)
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("querying node %q: %w", d.node.name, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("querying node %q: %w", d.node.name, err)
	}
	return values, nil
}

// WaitTrue asks a query for one boolean again and again, in one session, until
// it is true. An error of the query ends the wait.
func (d DB) WaitTrue(ctx context.Context, every time.Duration, what, sql string, args ...any) error {
	conn, err := d.node.Connect(ctx, d.name, "")
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	defer closeConn(conn)
	return poll(ctx, every, what, func() (bool, error) {
		var holds bool
		err := conn.QueryRow(ctx, sql, args...).Scan(&holds)
		return holds, err
	})
}
