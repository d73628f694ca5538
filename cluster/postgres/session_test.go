package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// short gives up soon; the tests that use it check what ends a wait, not when.
var short = Options{User: "postgres", DBName: "postgres", ConnectTimeout: 400 * time.Millisecond, QueryTimeout: 400 * time.Millisecond}

// serve listens until the test ends and gives each connection to handle, which
// must close it.
func serve(t *testing.T, handle func(net.Conn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { handle(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// blackHole accepts connections and never answers.
func blackHole(t *testing.T) (port int) {
	t.Helper()
	return serve(t, func(c net.Conn) {
		defer c.Close()
		io.Copy(io.Discard, c)
	})
}

// patient is a context that outlives every limit of short many times over, so
// that a test whose limit does not work fails and does not hang.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestReadOfABlackHoleEndsByItsOwnLimit(t *testing.T) {
	ctx := patient(t)
	port := strconv.Itoa(blackHole(t))
	for _, mode := range []string{"disable", "prefer", "require"} {
		t.Run(mode, func(t *testing.T) {
			s := session(t, "host=127.0.0.1 port="+port+" sslmode="+mode, short)
			_, err := s.Read(ctx)
			if err == nil || ctx.Err() != nil {
				t.Fatalf("Read gave %v, the test's own context %v; want an error by ConnectTimeout", err, ctx.Err())
			}
			if got := Classify(err); got != Unreachable {
				t.Errorf("Classify = %q, want %q (%v)", got, Unreachable, err)
			}
			if message, hint := Explain(err, "a"); !strings.Contains(message, "127.0.0.1:"+port) || hint == "" {
				t.Errorf("Explain gave %q, %q; want the address and a hint", message, hint)
			}
		})
	}
}

func TestContextEndsAReadOfABlackHole(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s := session(t, "host=127.0.0.1 port="+strconv.Itoa(blackHole(t)), Options{ConnectTimeout: time.Hour})
	if _, err := s.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Read gave %v, want the context's end", err)
	}
}

func TestFirstOfTwoHostsBlackHoled(t *testing.T) {
	port := blackHole(t)
	conninfo := "host=127.0.0.1,127.0.0.1 port=" + strconv.Itoa(port) + "," + strconv.Itoa(shared.port) + " sslmode=prefer"
	o := superuser
	o.ConnectTimeout = 5 * time.Second
	s := session(t, conninfo+" connect_timeout=1", o)
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read gave %v, want the second host's answer", err)
	}
}

func TestCloseEndsAConnectionInTheMaking(t *testing.T) {
	s := session(t, "host=127.0.0.1 port="+strconv.Itoa(blackHole(t)), Options{ConnectTimeout: time.Hour})
	ended := make(chan error, 1)
	go func() { _, err := s.Read(context.Background()); ended <- err }()
	eventually(t, "a connection in the making", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.all) == 1
	})
	s.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("Read of a closed session gave no error")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Read goes on after Close")
	}
	if _, err := s.Read(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close gave %v, want ErrClosed", err)
	}
}

func backend(t *testing.T, s *Session) (pid int) {
	t.Helper()
	err := s.do(patient(t), attempt{budget: time.Minute}, func(_ context.Context, c *pgx.Conn) error {
		pid = int(c.PgConn().PID())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestStoppedBackendEndsByTheLimitAndHeals(t *testing.T) {
	ctx := patient(t)
	s := session(t, shared.conninfo(""), superuser)
	if _, err := s.Read(ctx); err != nil {
		t.Fatal(err)
	}
	pid := backend(t, s)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
	s.opts.QueryTimeout = 300 * time.Millisecond
	if _, err := s.Read(ctx); err == nil || Classify(err) != Unreachable || ctx.Err() != nil {
		t.Fatalf("Read of a stopped backend gave %v, the test's own context %v; want unreachable by QueryTimeout", err, ctx.Err())
	}
	s.opts.QueryTimeout = superuser.QueryTimeout
	if _, err := s.Read(ctx); err != nil {
		t.Fatalf("the next read gave %v, want a new connection", err)
	}
	if again := backend(t, s); again == pid {
		t.Errorf("the next read used process %d again", pid)
	}
}

func TestPlacesComeBackWhileBackendsStayStopped(t *testing.T) {
	ctx := patient(t)
	s := session(t, shared.conninfo(""), superuser)
	for range maxConnections + 2 {
		pid := backend(t, s)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
		s.opts.QueryTimeout = 100 * time.Millisecond
		if _, err := s.Read(ctx); err == nil {
			t.Fatal("Read of a stopped backend gave no error")
		}
		s.opts.QueryTimeout = superuser.QueryTimeout
	}
	if _, err := s.Read(ctx); err != nil {
		t.Fatalf("Read gave %v, want a place for a new connection", err)
	}
}

func TestPacketsDroppedMidQuery(t *testing.T) {
	m := &middle{}
	o := superuser
	s := session(t, m.serve(t), o)
	for range maxConnections + 1 {
		m.frozen.Store(false)
		// Both places are soon free again, though nothing answers the cancel
		// requests and the goodbyes: pgx alone would wait 15 s for each.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := s.Read(ctx); err != nil {
			t.Fatalf("Read while packets pass gave %v", err)
		}
		cancel()
		m.frozen.Store(true)
		s.opts.QueryTimeout = 200 * time.Millisecond
		ctx = patient(t)
		if _, err := s.Read(ctx); err == nil || Classify(err) != Unreachable || ctx.Err() != nil {
			t.Fatalf("Read while packets are dropped gave %v, the test's own context %v; want unreachable", err, ctx.Err())
		}
		s.opts.QueryTimeout = o.QueryTimeout
	}
}

func TestReadIsOneRoundTrip(t *testing.T) {
	m := &middle{}
	s := session(t, m.serve(t), superuser)
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := m.syncs.Load()
		if _, err := s.Read(patient(t)); err != nil {
			t.Fatal(err)
		}
		if got := m.syncs.Load() - before; got != 1 {
			t.Errorf("a read took %d round trips, want 1", got)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s, err := New(cluster.Member{Name: "a", Conninfo: shared.conninfo("")}, superuser)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestKilledSessionCostsNoRead(t *testing.T) {
	ctx := patient(t)
	s := session(t, shared.conninfo(""), superuser)
	if _, err := s.Read(ctx); err != nil {
		t.Fatal(err)
	}
	pid := backend(t, s)
	admin := shared.admin(t, "postgres")
	exec1(t, admin, "SELECT pg_terminate_backend($1)", pid)
	eventually(t, "the backend's end", func() bool {
		return value[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid) == 0
	})
	if _, err := s.Read(ctx); err != nil {
		t.Fatalf("the read after the session was killed gave %v", err)
	}
}

func TestSessionsStayBoundedAfterCancelledReads(t *testing.T) {
	const name = "bounded"
	admin := shared.admin(t, "postgres")
	role(t, admin, name, "SUPERUSER")
	sessions := func() int {
		return value[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", name)
	}
	// Each read is cancelled at another message of the server, at one of the
	// session's start or of the answer itself; that message waits until the read
	// has ended.
	type read struct {
		left   atomic.Int64
		cancel context.CancelFunc
		ended  chan struct{}
	}
	var current atomic.Pointer[read]
	m := &middle{answer: func() {
		if r := current.Load(); r.left.Add(-1) == 0 {
			r.cancel()
			<-r.ended
		}
	}}
	o := superuser
	o.User = name
	s := session(t, m.serve(t), o)
	cancelled := 0
	for i := range 200 {
		ctx, cancel := context.WithCancel(patient(t))
		r := &read{cancel: cancel, ended: make(chan struct{})}
		r.left.Store(int64(1 + i%8))
		current.Store(r)
		if _, err := s.Read(ctx); err != nil {
			cancelled++
		}
		cancel()
		close(r.ended)
	}
	if cancelled < 50 {
		t.Fatalf("only %d of 200 reads were cancelled", cancelled)
	}
	eventually(t, "at most two sessions", func() bool { return sessions() <= maxConnections })
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read gave %v after all", err)
	}
	s.Close()
	eventually(t, "no session after Close", func() bool { return sessions() == 0 })
}
