package cases

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// sessions wants the controller to have so many sessions on a node at most. It
// asks again and again while cycles go on.
func sessions(s *harness.Scene, n *lab.Node, atMost int) {
	s.T.Helper()
	for range 3 {
		if pids := s.Workers(n); len(pids) > atMost {
			s.T.Errorf("%s has %d sessions of the controller, want %d at most: %v", n.Name(), len(pids), atMost, pids)
		}
		s.Cycles(1)
	}
}

// C41: what hangs is a standby's network or one of its backends. The cycles go on
// (that each ends by its deadline is counted in package controller), the other
// standby is followed, the sessions on the servers do not pile up, and all of it
// heals without a restart.
func TestC41SessionsThatHang(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Lasts: 10 * time.Minute})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	link := s.Link(s.B)
	s.Run()
	s.Safe([]string{"cdc"})

	follow := func() { // the other standby is where the slot is
		s.T.Helper()
		s.Exec(s.A, "INSERT INTO t VALUES (0)")
		s.Get(s.A, "cdc")
		s.Mirrored("cdc", s.C)
	}

	link.SwallowReplies() // in the middle of a query: the server has it, and its answer is lost
	s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonUnreachable)
	follow()
	sessions(s, s.B, 2)
	link.Heal()
	s.Safe([]string{"cdc"})
	sessions(s, s.B, 2)

	link.Stall() // nothing passes in either direction
	s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonUnreachable)
	follow()
	link.Heal()
	s.Safe([]string{"cdc"})
	sessions(s, s.B, 2)

	// Stopped backends stay on the server whatever their client does. Their places
	// are free again all the same, and two sessions are all that come in addition.
	stopped := s.Workers(s.B)
	for _, pid := range stopped {
		s.OK(syscall.Kill(pid, syscall.SIGSTOP))
	}
	follow()
	s.Safe([]string{"cdc"}, s.B)
	sessions(s, s.B, len(stopped)+2)
	for _, pid := range stopped {
		s.OK(syscall.Kill(pid, syscall.SIGCONT))
	}
	s.Wait("the stopped sessions to end", func() (bool, string) {
		pids := s.Workers(s.B)
		return len(pids) <= 2, fmt.Sprint(pids)
	})

	// The first of two hosts is a black hole: the second one is reached.
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	s.OK(err)
	defer func() { _ = hole.Close() }()
	_, port, _ := net.SplitHostPort(hole.Addr().String())
	s.Readdress(s.B, "host=127.0.0.1,127.0.0.1 port="+port+","+strconv.Itoa(s.B.Port()))
	follow()
	s.Safe([]string{"cdc"})
	sessions(s, s.B, 2)

	// The primary itself: nothing is withdrawn, and it heals as well.
	for _, pid := range s.Workers(s.A) {
		s.OK(syscall.Kill(pid, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // it may have ended
	}
	s.Cycles(2)
	if !s.Has(s.C, "cdc") {
		t.Error("the mirror went with an answer of the primary")
	}
	s.Safe([]string{"cdc"})
	follow()
}
