package lab

import (
	"fmt"
	"net"
	"sync"
)

// Link is a TCP proxy on loopback that does what networks do: it cuts, stalls,
// and loses what goes in one direction.
type Link struct {
	target   string
	listener net.Listener
	who      func(net.Conn) string // names the dialling side; nil: nobody asks
	wg       sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	stalled [2]bool // nothing passes: 0 to the target, 1 back from it
	refuse  bool    // connections are closed at once
	refused map[string]bool
	closed  bool
	conns   map[net.Conn]string // both ends of each, and who dialled
}

// NewLink listens on a free port and passes every connection on to target, a
// host:port. End it with Close.
func NewLink(target string) (*Link, error) { return newLink(target, "127.0.0.1:0", nil) }

func newLink(target, at string, who func(net.Conn) string) (*Link, error) {
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("making a link to %s: %w", target, err)
	}
	l := &Link{target: target, listener: listener, who: who, conns: map[net.Conn]string{}, refused: map[string]bool{}}
	l.changed = sync.NewCond(&l.mu)
	l.wg.Go(l.accept)
	return l, nil
}

// Addr is where the link listens, a host:port.
func (l *Link) Addr() string { return l.listener.Addr().String() }

func (l *Link) accept() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		out := l.connect(in)
		if out == nil {
			_ = in.Close()
			continue
		}
		l.wg.Go(func() { l.pass(0, in, out) })
		l.wg.Go(func() { l.pass(1, out, in) })
	}
}

// connect gives the other half of a connection, nil for none.
func (l *Link) connect(in net.Conn) net.Conn {
	who := ""
	if l.who != nil {
		if who = l.who(in); who == "" {
			return nil // it is gone already
		}
	}
	out, err := net.Dial("tcp", l.target)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.refuse || l.refused[who] {
		_ = out.Close()
		return nil
	}
	l.conns[in], l.conns[out] = who, who
	return out
}

func (l *Link) pass(way int, from, to net.Conn) {
	defer l.drop(from, to)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		for l.stalled[way] && !l.closed {
			l.changed.Wait()
		}
		l.mu.Unlock()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *Link) drop(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(l.conns, c)
	}
}

func (l *Link) set(toTarget, back, refuse bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled, l.refuse = [2]bool{toTarget, back}, refuse
	l.changed.Broadcast()
}

// Stall lets nothing through, and nobody is told: as for a process that is stopped.
func (l *Link) Stall() { l.set(true, true, false) }

// SwallowReplies lets requests through and keeps the answers.
func (l *Link) SwallowReplies() { l.set(false, true, false) }

// Heal lets everything through, also what was kept back.
func (l *Link) Heal() { l.set(false, false, false) }

// Cut ends all connections and takes no new ones.
func (l *Link) Cut() {
	l.set(false, false, true)
	l.end(func(string) bool { return true })
}

// cutFrom is Cut for those whom one of the names dials; healFrom undoes it.
func (l *Link) cutFrom(name string) {
	l.mu.Lock()
	l.refused[name] = true
	l.mu.Unlock()
	l.end(func(who string) bool { return who == name })
}

func (l *Link) healFrom(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.refused, name)
}

func (l *Link) end(which func(who string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, who := range l.conns {
		if which(who) {
			_ = c.Close()
			delete(l.conns, c)
		}
	}
}

// Close ends the link and its connections.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.listener.Close()
	l.Cut()
	l.wg.Wait()
}
