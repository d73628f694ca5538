package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Query runs one read-only query, bounded by QueryTimeout, and gives each row
// to scan. what begins the text of an error.
func (s *Session) Query(ctx context.Context, what, sql string, scan func(pgx.Rows) error, args ...any) error {
	return s.do(ctx, attempt{budget: s.opts.QueryTimeout, readOnly: true}, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, sql, args...)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// Replication runs commands of the replication protocol on a connection of its
// own, which ends with them. The connection names the database, so the pg_hba.conf
// line of the ordinary sessions admits it as well.
func (s *Session) Replication(ctx context.Context, commands func(context.Context, *pgconn.PgConn) error) error {
	if err := s.take(ctx); err != nil {
		return s.fault(err)
	}
	config, err := s.opts.config(s.member)
	if err == nil {
		config.RuntimeParams["replication"] = "database"
		err = s.replicate(ctx, config, commands)
	} else {
		<-s.tokens
	}
	if err != nil {
		return s.fault(err)
	}
	return nil
}

func (s *Session) replicate(ctx context.Context, config *pgx.ConnConfig, commands func(context.Context, *pgconn.PgConn) error) error {
	c, err := s.dial(ctx, config)
	if err != nil {
		<-s.tokens
		return err
	}
	defer s.discard(c)
	return bounded(ctx, c.Conn, s.opts.QueryTimeout, func(ctx context.Context, c *pgx.Conn) error {
		return commands(ctx, c.PgConn())
	})
}
