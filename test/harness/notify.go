package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Notified is a socket as systemd has one for a service: it keeps what it is told.
type Notified struct {
	path string
	conn *net.UnixConn

	mu   sync.Mutex
	said []string
}

// Notify listens until the test ends.
func Notify(t *testing.T) *Notified {
	t.Helper()
	// A socket's path has room for 107 bytes, which a test's own folder may exceed.
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	s := &Notified{path: filepath.Join(dir, "socket")}
	if s.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for message := make([]byte, 4096); ; {
			n, err := s.conn.Read(message)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.said = append(s.said, string(message[:n]))
			s.mu.Unlock()
		}
	}()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(s.path, 0o777)); err != nil {
		t.Fatal(err) // services run as others
	}
	t.Cleanup(func() {
		_ = s.conn.Close() // it ends the reading
		<-ended
		_ = os.RemoveAll(dir) // it lies below the temporary folder
	})
	return s
}

// All is what was said so far, in order.
func (s *Notified) All() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// Count is how often something was said.
func (s *Notified) Count(what string) int {
	n := 0
	for _, one := range s.All() {
		if one == what {
			n++
		}
	}
	return n
}

// Env is what systemd gives a service with a watchdog of this many seconds.
func (s *Notified) Env(watchdog time.Duration) []string {
	return []string{"NOTIFY_SOCKET=" + s.path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}
}
