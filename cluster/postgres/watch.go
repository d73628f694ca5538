package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const (
	// watchLimit is the longest that one call waits. It is well below the
	// session's statement_timeout.
	watchLimit = 30 * time.Second
	// nudgeEvery is how often a call that shall end is told so.
	nudgeEvery = 50 * time.Millisecond
)

// watchSettings name Watch's connection for those who look at the server.
var watchSettings = map[string]string{"application_name": "slotkeeper wait"}

// A token is a parameter, not a part of the text: pg_stat_statements has one
// entry for all calls.
const watchSQL = `CALL slotkeeper.wait_for_change($1::text, $2::text::interval)`

var errWatchPlace = errors.New("no connection is left to wait on")

// Watch waits, on a connection of its own, until the node is no longer as since
// says, a token that an earlier Watch gave; with "" it returns at once, with
// Changed. With a target it also waits for that position to be replayed. It ends
// with neither after half a minute, and when ctx ends, which costs no connection.
//
// The connection takes the second of the session's two places. Where it is
// needed for other work Watch fails.
func (s *Session) Watch(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error) {
	var token *string
	if since != "" {
		text := since
		if target.OK {
			text += "@" + target.V.String()
		}
		token = &text
	}
	told, err := s.watch(ctx, token)
	if err != nil {
		return cluster.Watched{Token: since}, s.fault(fmt.Errorf("waiting for a change: %w", err))
	}
	// A target that is not reached yet comes back with the token.
	now, _, ahead := strings.Cut(told, "@")
	return cluster.Watched{Token: now, Changed: now != since, Reached: since != "" && target.OK && !ahead}, nil
}

func (s *Session) watch(ctx context.Context, token *string) (told string, err error) {
	c, err := s.watcher(ctx)
	if err != nil {
		return "", err
	}
	defer func() { s.park(c, usable(c.Conn, err)) }()
	limit := min(watchLimit, 15*s.opts.QueryTimeout)
	err = bounded(context.WithoutCancel(ctx), c.Conn, limit+s.opts.QueryTimeout, func(patient context.Context, conn *pgx.Conn) error {
		defer s.nudgeAfter(ctx, conn.PgConn().Conn())()
		return conn.QueryRow(patient, watchSQL, token, fmt.Sprintf("%d ms", limit.Milliseconds())).Scan(&told)
	})
	return told, err
}

// nudgeAfter ends the waiting call when ctx ends, without cancelling it: the
// procedure waits no longer once its client has sent something, and to a Flush
// message the server answers nothing. One that comes before the call is lost on
// it, so it is sent until the call is over. What it gives must be called then.
func (s *Session) nudgeAfter(ctx context.Context, socket net.Conn) func() {
	over, gone := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		if socket.SetDeadline(time.Now().Add(s.opts.QueryTimeout)) != nil {
			return
		}
		for {
			if _, err := socket.Write([]byte{'H', 0, 0, 0, 4}); err != nil {
				return
			}
			select {
			case <-over:
				return
			case <-time.After(nudgeEvery):
			}
		}
	})
	return func() {
		close(over)
		if !stop() {
			<-gone
		}
	}
}

// watcher gives the parked connection, or opens one where a place is free.
func (s *Session) watcher(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	c := s.parked
	s.parked = nil
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, ErrClosed
	case s.watching != nil:
		s.mu.Unlock()
		return nil, errWatchPlace
	case c != nil:
		s.watching = c
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	select {
	case s.tokens <- struct{}{}:
	default:
		return nil, errWatchPlace
	}
	c, err := s.open(ctx, watchSettings)
	if err != nil {
		<-s.tokens
		return nil, err
	}
	s.mu.Lock()
	s.watching = c
	s.mu.Unlock()
	return c, nil
}

// park keeps a healthy connection for the next Watch, or ends it.
func (s *Session) park(c *connection, healthy bool) {
	s.mu.Lock()
	s.watching = nil
	if healthy && !s.closed {
		s.parked = c
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.discard(c)
}

// WatchAnew ends Watch's connection, which is opened again when it is needed.
func (s *Session) WatchAnew() { s.evict() }

// evict ends Watch's connection, so that its place is free at once.
func (s *Session) evict() {
	s.mu.Lock()
	parked, busy := s.parked, s.watching
	s.parked = nil
	s.mu.Unlock()
	if parked != nil {
		s.discard(parked)
	}
	if busy != nil {
		busy.line.Cut()
	}
}
