package postgres

import (
	"context"
	"net"
	"sync"
	"time"
)

// lifeline knows every socket that one connection has opened: its own and
// those of its cancel requests. Cutting it ends at once what pgx would wait for
// up to 15 s when it closes a connection to a server that does not answer.
type lifeline struct {
	dialer net.Dialer

	mu      sync.Mutex
	cut     bool
	cancel  []context.CancelFunc
	sockets []net.Conn
}

func newLifeline(limit time.Duration) *lifeline {
	return &lifeline{dialer: net.Dialer{
		Timeout: limit,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3,
		},
		Control: setUserTimeout,
	}}
}

func (l *lifeline) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if l.cut {
		l.mu.Unlock()
		return nil, net.ErrClosed
	}
	l.cancel = append(l.cancel, cancel)
	l.mu.Unlock()

	c, err := l.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		c.Close()
		return nil, net.ErrClosed
	}
	l.sockets = append(l.sockets, c)
	return c, nil
}

// Cut closes all sockets, now and for ever. It does not block.
func (l *lifeline) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, cancel := range l.cancel {
		cancel()
	}
	for _, c := range l.sockets {
		c.Close()
	}
	l.cancel, l.sockets = nil, nil
}
