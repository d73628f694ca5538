//go:build patroni

package patroni

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// killing starts a switchover that shows its progress on a file.
func (s *scene) killing(progress *os.File) *exec.Cmd {
	s.T.Helper()
	cmd := exec.CommandContext(s.Ctx, harness.Binary(s.T), "switchover", "--yes", "--config", s.Daemon.Config())
	cmd.Env, cmd.Stderr = lab.Environment(), progress
	s.OK(cmd.Start())
	return cmd
}

// killedAt runs a switchover and kills it as soon as it says that it is at a step.
func (s *scene) killedAt(step string) {
	s.T.Helper()
	r, w, err := os.Pipe()
	s.OK(err)
	cmd := s.killing(w)
	_ = w.Close()
	defer func() { _ = r.Close() }()
	stop := context.AfterFunc(s.Ctx, func() { _ = r.Close() })
	defer stop()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		s.T.Log(lines.Text())
		if strings.HasPrefix(lines.Text(), "slotkeeper: "+step+":") {
			s.OK(cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			return
		}
	}
	s.T.Fatalf("it never came to %s: %v", step, cmd.Wait())
}

// killedRecorded kills a switchover between its record and its request. What shows
// its progress holds one line at a time, so it stands still at its next one.
func (s *scene) killedRecorded() {
	s.T.Helper()
	var p [2]int
	s.OK(unix.Pipe2(p[:], unix.O_DIRECT|unix.O_CLOEXEC))
	r, w := os.NewFile(uintptr(p[0]), "progress"), os.NewFile(uintptr(p[1]), "progress")
	defer func() { _ = r.Close() }()
	_, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	s.OK(err)
	cmd := s.killing(w)
	_ = w.Close()
	line := make([]byte, os.Getpagesize())
	s.until("the record to be written", func() (bool, string) {
		if s.record() != "" {
			return true, ""
		}
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		s.OK(err)
		if n == 0 {
			return false, "it says nothing"
		}
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if s.record() != "" {
				return true, ""
			}
		}
		n, err = r.Read(line)
		s.OK(err)
		s.T.Log(string(line[:n]))
		return false, "it says " + string(line[:n])
	})
	if s.requests() != 0 || !strings.Contains(s.record(), `"asked":false`) {
		s.T.Fatalf("it went on: %s", s.record())
	}
	s.OK(cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait() // it was killed
}

// A switchover that is killed at any step is gone on with to its end by the next
// call, and Patroni is asked once for each, under a live consumer that loses nothing.
func TestSwitchoverKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s, life := consumed(t, nil)
	kills := []struct {
		name string
		kill func()
	}{
		{"recorded and not asked", s.killedRecorded},
		{"record", func() { s.killedAt("record") }},
		{"ask", func() { s.killedAt("ask") }},
		{"handover", func() { s.killedAt("handover") }},
		{"slots", func() { s.killedAt("slots") }},
		{"old_primary", func() { s.killedAt("old_primary") }},
	}
	for i, k := range kills {
		t.Logf("killed at: %s", k.name)
		from := s.leader().Name()
		k.kill()
		recorded := s.record() != ""
		doc := s.switchover(0, switchover.OutcomeDone, "--yes")
		s.done(doc, from, doc.To)
		if n := s.requests(); n != i+1 {
			t.Fatalf("killed at %s: Patroni was asked %d times for %d switchovers", k.name, n, i+1)
		}
		if doc.Resumed && !recorded || !doc.Resumed && i >= 3 {
			t.Errorf("killed at %s: resumed %v, a record %v", k.name, doc.Resumed, recorded)
		}
		s.goesOn(life)
		s.safe("cdc")
	}
	s.account(life)
}

// Once another leads, the next switchover begins although the record of the one before
// is still there: it is asked for by name.
func TestNextSwitchoverDoesNotWait(t *testing.T) {
	t.Parallel()
	s := mirrored(t, nil)
	first := s.leader()
	s.killedAt("old_primary")
	second := s.leader()
	if first == second || s.record() == "" {
		t.Fatalf("%s led, and now %s does; the record: %q", first.Name(), second.Name(), s.record())
	}
	third := s.p.Others(second)[0]
	if third == first {
		third = s.p.Others(second)[1]
	}
	if r := s.Slotkeeper("wait", "--standby", third.Name(), "--timeout", "2m"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	doc := s.switchover(0, switchover.OutcomeDone, "--yes", "--to", third.Name())
	if doc.Resumed {
		t.Errorf("%+v", doc)
	}
	s.done(doc, second.Name(), third.Name())
	if n := s.requests(); n != 2 {
		t.Errorf("Patroni was asked %d times", n)
	}
}

// Two runs at the same time ask once between them, and both go on to the end.
func TestTwoSwitchoversAtOnce(t *testing.T) {
	t.Parallel()
	s := mirrored(t, nil)
	from := s.leader()
	to := s.p.Others(from)[0].Name()
	var both [2]harness.Result
	var runs sync.WaitGroup
	for i := range both {
		runs.Go(func() { both[i] = s.Slotkeeper("switchover", "--yes", "--to", to, "-o", "json") })
	}
	runs.Wait()
	done := 0
	for _, r := range both {
		switch doc := s.document(r); {
		case r.Code == 0 && doc.Outcome == switchover.OutcomeDone:
			done++
			s.done(doc, from.Name(), to)
		case r.Code == 3 && strings.Contains(doc.Message, "it is the leader already"): // it came when all was over
		default:
			t.Errorf("%+v", r)
		}
	}
	if done == 0 || s.requests() != 1 {
		t.Errorf("%d of 2 are done, Patroni was asked %d times", done, s.requests())
	}
}
