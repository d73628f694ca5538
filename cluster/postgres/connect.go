package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// acquire gives the kept connection, or opens one. It waits for one of the two
// places until ctx ends, and no longer than ConnectTimeout.
func (s *Session) acquire(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	kept := s.kept
	s.kept = nil
	s.mu.Unlock()
	if kept != nil {
		kept.reused = true
		return kept, nil
	}

	if err := s.take(ctx); err != nil {
		return nil, err
	}
	c, err := s.open(ctx, nil)
	if err != nil {
		<-s.tokens
		return nil, err
	}
	return c, nil
}

// take waits for the place of a new connection; Watch gives up its own for it.
func (s *Session) take(ctx context.Context) error {
	select {
	case s.tokens <- struct{}{}:
		return nil
	default:
		s.evict()
	}
	limit := time.NewTimer(s.opts.ConnectTimeout)
	defer limit.Stop()
	select {
	case s.tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a connection: %w", ctx.Err())
	case <-limit.C:
		return fmt.Errorf("waiting for a connection: all %d are busy or still closing: %w", maxConnections, context.DeadlineExceeded)
	}
}

// open connects, with these settings beside the usual ones, and looks whether
// it is a connection that can be used.
func (s *Session) open(ctx context.Context, settings map[string]string) (*connection, error) {
	config, err := s.opts.config(s.member)
	if err != nil {
		return nil, err
	}
	maps.Copy(config.RuntimeParams, settings)
	c, err := s.dialNewer(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := bounded(ctx, c.Conn, s.opts.QueryTimeout, s.check); err != nil {
		farewell(c.Conn)
		c.line.Cut()
		s.leave(c)
		return nil, err
	}
	return c, nil
}

// dialNewer connects with the settings that older majors do not know, and
// without them once a server has refused them. They cannot wait until the
// connection stands: an inherited idle_session_timeout may end it before that.
func (s *Session) dialNewer(ctx context.Context, config *pgx.ConnConfig) (*connection, error) {
	if s.older.Load() {
		return s.dial(ctx, config)
	}
	maps.Copy(config.RuntimeParams, s.newer)
	c, err := s.dial(ctx, config)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != codeNoObject {
		return c, err
	}
	s.older.Store(true)
	for name := range s.newer {
		delete(config.RuntimeParams, name)
	}
	return s.dial(ctx, config)
}

func (s *Session) dial(ctx context.Context, config *pgx.ConnConfig) (*connection, error) {
	c := &connection{line: newLifeline(config.ConnectTimeout)}
	config.DialFunc = c.line.dial
	if !s.enter(c) {
		return nil, ErrClosed
	}
	var err error
	if c.Conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		c.line.Cut()
		s.leave(c)
		return nil, err
	}
	return c, nil
}

func (s *Session) enter(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.all[c] = struct{}{}
	return true
}

func (s *Session) leave(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
}

// release keeps a healthy connection for the next work, or ends it.
func (s *Session) release(c *connection, healthy bool) {
	s.mu.Lock()
	if healthy && !s.closed && s.kept == nil {
		s.kept = c
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.discard(c)
}

// discard ends a connection without waiting for the server. Its place is free
// again once nothing of it is left on our side.
func (s *Session) discard(c *connection) {
	farewell(c.Conn)
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		c.line.Cut()
	}
	cut := time.AfterFunc(closeGrace, c.line.Cut)
	go func() {
		<-c.PgConn().CleanupDone()
		cut.Stop()
		c.line.Cut()
		s.leave(c)
		<-s.tokens
	}()
}

// farewell says goodbye where that does not block. pgx does it by itself, in
// the background, for a connection that broke while it was in use.
func farewell(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	c.Close(ctx) // what it reports is about a connection that nobody uses any more
}

// broken reports whether err says that the connection ended under the work.
func broken(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) && !network.Timeout() || strings.Contains(err.Error(), "conn closed")
}
