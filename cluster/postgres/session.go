package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const (
	// maxConnections per node: the one that is kept, and one more for Watch. A
	// call that comes while the kept one is busy or still being closed takes
	// Watch's place.
	maxConnections = 2
	// closeGrace is what a failed connection gets for its cancel request and
	// its goodbye before its sockets are closed under it.
	closeGrace = time.Second
)

// ErrClosed is what every method gives after Close.
var ErrClosed = errors.New("the session is closed")

// Session talks to one node. It connects when it is first used, keeps one
// connection open, and opens a new one when that fails. At most two exist at
// any time, those being closed included. Methods are for any goroutine; only one
// Watch goes on at a time.
type Session struct {
	member cluster.Member
	opts   Options
	tokens chan struct{} // one per connection that exists
	newer  map[string]string
	older  atomic.Bool // the server does not know the settings in newer

	mu       sync.Mutex
	closed   bool
	kept     *connection
	parked   *connection // Watch's, between two calls
	watching *connection // Watch's, in a call
	all      map[*connection]struct{}
}

// connection is one connection and what belongs to it.
type connection struct {
	*pgx.Conn
	line   *lifeline
	reused bool
}

// New makes the session of a member; it does not connect. An error says that
// the conninfo is not one, or that the passfile cannot be read.
func New(m cluster.Member, o Options) (*Session, error) {
	o = o.withDefaults()
	if _, err := o.config(m); err != nil {
		return nil, err
	}
	return &Session{
		member: m,
		opts:   o,
		tokens: make(chan struct{}, maxConnections),
		newer:  map[string]string{"idle_session_timeout": "0"}, // since 14
		all:    map[*connection]struct{}{},
	}, nil
}

// Node gives the member's name.
func (s *Session) Node() string { return s.member.Name }

// Close ends all connections, also those in use. It does not wait for the server.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	kept := s.kept
	s.kept = nil
	busy := make([]*connection, 0, len(s.all))
	for c := range s.all {
		if c != kept {
			busy = append(busy, c)
		}
	}
	s.mu.Unlock()
	for _, c := range busy {
		c.line.Cut()
	}
	if kept != nil {
		s.discard(kept)
	}
}

// attempt says what a piece of work needs.
type attempt struct {
	budget time.Duration // for the work, beside the time that connecting takes
	// readOnly work may be repeated whatever broke the connection. Other work
	// is repeated only where the server cannot have begun it.
	readOnly bool
}

// do runs work on a connection. A connection kept from earlier may have died
// since (a restarted server, a firewall): then the work is tried once more on a
// new one, so that a restart costs no cycle.
func (s *Session) do(ctx context.Context, a attempt, work func(context.Context, *pgx.Conn) error) error {
	reused, err := s.once(ctx, a, work)
	if err != nil && reused && ctx.Err() == nil && mayRepeat(err, a.readOnly) {
		_, err = s.once(ctx, a, work)
	}
	if err != nil {
		return s.fault(err)
	}
	return nil
}

func (s *Session) once(ctx context.Context, a attempt, work func(context.Context, *pgx.Conn) error) (reused bool, err error) {
	c, err := s.acquire(ctx)
	if err != nil {
		return false, err
	}
	reused = c.reused
	healthy := false
	defer func() { s.release(c, healthy) }()
	err = bounded(ctx, c.Conn, a.budget, work)
	healthy = usable(c.Conn, err)
	return reused, err
}

// bounded ends work by the budget twice over: by the context, at which pgx
// ends its read, and by a deadline on the socket should that not come.
func bounded(ctx context.Context, c *pgx.Conn, budget time.Duration, work func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	socket := c.PgConn().Conn()
	if err := socket.SetDeadline(time.Now().Add(budget + budget/4)); err != nil {
		return fmt.Errorf("setting the deadline of the connection: %w", err)
	}
	err := work(ctx, c)
	if !c.IsClosed() {
		if err := socket.SetDeadline(time.Time{}); err != nil {
			return fmt.Errorf("clearing the deadline of the connection: %w", err)
		}
	}
	return err
}

// usable reports whether a connection is fit for the next piece of work.
func usable(c *pgx.Conn, err error) bool {
	var stale *staleError
	if c.IsClosed() || c.PgConn().IsBusy() || c.PgConn().TxStatus() != 'I' || errors.As(err, &stale) {
		return false
	}
	var pg *pgconn.PgError
	// A session keeps the plans and the library that it has loaded.
	return !errors.As(err, &pg) || pg.Code != codePlanChanged && !fromLoader(pg)
}

// mayRepeat reports whether work that failed on a kept connection may be done
// again on a new one.
func mayRepeat(err error, readOnly bool) bool {
	if pgconn.Timeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case codePlanChanged, codeAdminShutdown, codeIdleSession, codeIdleInTransaction:
			return true // the session ended, or the statement never began
		}
		return false
	}
	var own *staleError
	if errors.As(err, &own) {
		return own.reconnect
	}
	return pgconn.SafeToRetry(err) || readOnly && broken(err)
}
