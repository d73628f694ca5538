package etcd

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// proxy stands between a client and a server and does what networks do.
type proxy struct {
	url    string
	target string
	l      net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	stalled [2]bool // nothing passes: 0 to the server, 1 to the client
	refuse  bool    // connections are closed at once
	closed  bool
	conns   map[net.Conn]bool
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		url: "http://" + l.Addr().String(), target: strings.TrimPrefix(url, "http://"),
		l: l, conns: map[net.Conn]bool{},
	}
	p.changed = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse || p.closed
		p.mu.Unlock()
		out, err := net.Dial("tcp", p.target)
		if refuse || err != nil || !p.keep(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		p.wg.Go(func() { p.pass(0, in, out) })
		p.wg.Go(func() { p.pass(1, out, in) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.closed
}

func (p *proxy) pass(way int, from, to net.Conn) {
	defer func() { _ = from.Close(); _ = to.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		for p.stalled[way] && !p.closed {
			p.changed.Wait()
		}
		p.mu.Unlock()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) set(toServer, toClient, refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled, p.refuse = [2]bool{toServer, toClient}, refuse
	p.changed.Broadcast()
}

// stall lets nothing through; nobody is told. As for a process that is stopped.
func (p *proxy) stall() { p.set(true, true, false) }

// swallowReplies lets requests through and keeps the answers.
func (p *proxy) swallowReplies() { p.set(false, true, false) }

// heal lets everything through, also what was kept back.
func (p *proxy) heal() { p.set(false, false, false) }

// cut ends all connections and takes no new ones.
func (p *proxy) cut() {
	p.set(false, false, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.l.Close()
	p.cut()
	p.wg.Wait()
}
