//go:build patroni

package patroni

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// The gate of each standby is killed by SIGKILL while Patroni waits for its answer: its
// etcd has fallen silent, and it has a minute. Patroni takes that for a no, gives the
// leader key back and leaves that node out for its ttl; so nobody is promoted unasked,
// and once the gate lives somebody is, with every slot.
func TestC33GateKilledWhilePatroniWaits(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]any{"ignore_slots": covering()})
	s.run()
	s.safe("cdc")
	life := s.live()
	s.goesOn(life)
	dead := s.leader()
	standbys := s.p.Others(dead)
	link, err := lab.NewLink(s.p.Etcd().Members()[0].Addr())
	s.OK(err)
	t.Cleanup(link.Close)
	link.Stall()
	s.gateAsks(link.Addr())

	s.in(dead.Kill)
	for _, m := range standbys {
		s.received(m)
	}
	began := time.Now()
	s.in(s.p.RevokeLeader)
	killed := map[string]bool{}
	s.until("the gate of both standbys to be asked and killed", func() (bool, string) {
		if name := s.killGate(); name != "" {
			killed[name] = true
			t.Logf("%s: the gate of %s is killed", time.Since(began).Round(time.Millisecond), name)
		}
		return len(killed) == len(standbys), strings.Join(namesOf(killed), " ") + " was"
	})
	for _, m := range standbys {
		const gaveUp = "exited with -9"
		s.until(m.Name()+" to have noticed", func() (bool, string) {
			return strings.Contains(m.LogTail(1<<20), gaveUp), m.LogTail(5)
		})
		if recovering := s.Text(m.Node(), "pg_is_in_recovery()"); recovering != "true" {
			t.Errorf("%s was promoted although its gate was killed", m.Name())
		}
	}
	s.OK(s.p.ConfigureGate(""))
	leader := s.leader()
	t.Logf("%s leads %s after the loss of the leader key", leader.Name(), time.Since(began).Round(time.Millisecond))
	if lines := gateLines(leader); len(lines) != 1 || !strings.HasPrefix(lines[0], "allow") {
		t.Errorf("its gate said %q", lines)
	}
	s.goesOn(life)
	s.safe("cdc")
	s.in(dead.Start)
	s.in(s.p.WaitStreaming)
	s.in(dead.WaitReady)
	s.safe("cdc")
	s.account(life)
}

// gateAsks has the members' gates ask an etcd at another address, and wait for it.
func (s *scene) gateAsks(address string) {
	s.T.Helper()
	text, err := os.ReadFile(s.gateFile("gate.yaml"))
	s.OK(err)
	direct := s.p.Etcd().Members()[0].Addr()
	if !strings.Contains(string(text), direct) {
		s.T.Fatalf("%s is not in %s", direct, text)
	}
	s.OK(s.p.WriteGateConfig(strings.Replace(string(text), direct, address, 1) + "promotion: {deadline: 1m}\n"))
}

// gateFile is the path of what the members' gates run, or read.
func (s *scene) gateFile(name string) string {
	return filepath.Join(filepath.Dir(s.p.Members()[0].LogFile()), name)
}

// killGate kills a gate of this cluster that runs, and gives the name of its node; ""
// where none does.
func (s *scene) killGate() string {
	s.T.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	s.OK(err)
	for _, path := range commands {
		text, err := os.ReadFile(path)
		args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		if err != nil || args[0] != s.gateFile("gate") || len(args) < 2 || args[1] != "gate" {
			continue // it has ended, or is another one
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		s.OK(err)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			continue // it has ended by itself
		}
		return args[len(args)-1]
	}
	return ""
}

func namesOf(set map[string]bool) []string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	return names
}
