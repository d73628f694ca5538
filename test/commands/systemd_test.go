package commands

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// told is a socket as systemd has one for a service: it keeps what it is told.
type told struct {
	path string
	conn *net.UnixConn

	mu   sync.Mutex
	said []string
}

func listen(t *testing.T) *told {
	t.Helper()
	// A socket's path has room for 107 bytes, which a test's own folder may exceed.
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	s := &told{path: filepath.Join(dir, "socket")}
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
	t.Cleanup(func() {
		_ = s.conn.Close() // it ends the reading
		<-ended
		_ = os.RemoveAll(dir) // it lies below the temporary folder
	})
	return s
}

func (s *told) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

func (s *told) count(what string) int {
	n := 0
	for _, one := range s.all() {
		if one == what {
			n++
		}
	}
	return n
}

// env is what systemd gives a service with a watchdog of this many seconds.
func (s *told) env(watchdog time.Duration) []string {
	return []string{"NOTIFY_SOCKET=" + s.path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}
}

func waitTold(s *harness.Scene, socket *told, what string, times int) {
	s.T.Helper()
	s.Wait(fmt.Sprintf("%s, %d times", what, times), func() (bool, string) {
		return socket.count(what) >= times, strings.Join(socket.all(), ", ")
	})
}

// systemd is told that the daemon is ready after its first complete cycle, the
// watchdog is fed as cycles go on, and is given the time that a healthy loop may
// take; the end is told of as well. A second controller is ready once it waits.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	etcd := s.Etcd(lab.EtcdOptions{Members: 1})
	s.Logical(s.A, "cdc")
	leads, waits := listen(t), listen(t)
	s.OK(etcd.Members()[0].Freeze())
	d := s.RunWith(lab.DaemonOptions{Etcd: etcd.Section(nil), Env: leads.env(time.Second)})
	waitTold(s, leads, "STATUS=waiting for etcd", 1)
	if leads.count("READY=1") != 0 {
		t.Error("it is ready without etcd")
	}
	s.OK(etcd.Members()[0].Thaw())
	waitTold(s, leads, "READY=1", 1)
	if doc, ok := s.Status(); !ok || doc.Primary == nil || !doc.Complete {
		t.Errorf("it is ready before its first complete cycle: %+v", doc)
	}
	waitTold(s, leads, "WATCHDOG=1", 3)

	second := s.RunWith(lab.DaemonOptions{Name: "second", Etcd: etcd.Section(nil), Env: waits.env(time.Minute)})
	waitTold(s, waits, "READY=1", 1)
	waitTold(s, waits, "WATCHDOG=1", 1)
	s.OK(second.Stop(s.Ctx))
	s.OK(d.Stop(s.Ctx))

	for who, want := range map[*told][]string{
		leads: {"WATCHDOG_USEC=18000000", "STATUS=waiting for etcd", "STATUS=leads", "READY=1", "WATCHDOG=1", "STOPPING=1"},
		waits: {"STATUS=waits to lead", "READY=1", "WATCHDOG=1", "STOPPING=1"},
	} {
		said := who.all()
		var first []string
		for _, one := range said {
			if !slices.Contains(first, one) {
				first = append(first, one)
			}
		}
		if !slices.Equal(first, want) || who.count("READY=1") != 1 || said[len(said)-1] != "STOPPING=1" {
			t.Errorf("it was told\n%s", strings.Join(said, "\n"))
		}
	}
}

// The unit is one that systemd takes whole, and what it starts is there.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/slotkeeper.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "slotkeeper.service")
	const program, config = "/usr/local/bin/slotkeeper", "/etc/slotkeeper/slotkeeper.yaml"
	if strings.Count(string(text), "ExecStart="+program+" run --config "+config+"\n") != 1 {
		t.Errorf("it does not start %s with %s", program, config)
	}
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), program, harness.Binary(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("this machine has no systemd-analyze")
		return
	}
	said, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || len(said) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
}
