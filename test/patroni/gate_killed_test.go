//go:build patroni

package patroni

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Each standby's process of pre_promote is killed by SIGKILL while Patroni waits for
// it, before it can answer. Patroni takes that for a no, gives the leader key back and
// leaves that node out for its ttl; so nobody is promoted unasked, and the next gate
// that lives lets somebody through, with every slot.
func TestC33GateKilledWhilePatroniWaits(t *testing.T) {
	t.Parallel()
	s, life := consumed(t, nil)
	dead := s.leader()
	standbys := s.p.Others(dead)
	for _, m := range standbys {
		s.beforeGate(m, fmt.Sprintf(`import signal
if not os.path.exists(%[1]q):
    with open(%[1]q + ".new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(%[1]q + ".new", %[1]q)
    os.kill(os.getpid(), signal.SIGSTOP)
`, waitingFile(m)))
	}

	s.in(dead.Kill)
	for _, m := range standbys {
		s.received(m)
	}
	began := time.Now()
	s.in(s.p.RevokeLeader)
	killed := map[string]bool{}
	s.until("the gates of both standbys to be asked and killed", func() (bool, string) {
		for _, m := range standbys {
			if !killed[m.Name()] && s.killWaiting(m) {
				killed[m.Name()] = true
				t.Logf("%s: the gate of %s is killed", time.Since(began).Round(time.Millisecond), m.Name())
			}
		}
		return len(killed) == len(standbys), fmt.Sprintf("%v were", killed)
	})
	leader := s.leader()
	t.Logf("%s leads %s after the loss of the leader key", leader.Name(), time.Since(began).Round(time.Millisecond))
	for _, m := range standbys {
		if log := m.LogTail(1 << 20); strings.Count(log, "exited with -9") != 1 {
			t.Errorf("%s has not noticed: %s", m.Name(), m.LogTail(10))
		}
	}
	if lines := gateLines(leader); len(lines) != 1 || !strings.HasPrefix(lines[0], "allow: "+leader.Name()+" can serve 1 slot") {
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

// waitingFile holds the process that Patroni waits for.
func waitingFile(m *lab.PatroniMember) string { return m.Node().DataDir() + ".waiting" }

// killWaiting kills the process that a member's Patroni waits for, once there is one.
func (s *scene) killWaiting(m *lab.PatroniMember) bool {
	s.T.Helper()
	text, err := os.ReadFile(waitingFile(m))
	if os.IsNotExist(err) {
		return false
	}
	s.OK(err)
	pid, err := strconv.Atoi(string(text))
	s.OK(err)
	s.OK(syscall.Kill(pid, syscall.SIGKILL))
	return true
}
