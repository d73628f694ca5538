package harness

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Incarnation names the directory of a slot: another one after it was dropped
// and made again.
func (s *Scene) Incarnation(n *lab.Node, slot string) string {
	s.T.Helper()
	return s.Text(n, fmt.Sprintf("SELECT incarnation FROM slotkeeper.slots() WHERE name = '%s'", slot))
}

// Generation is that of a marked slot; 0 where it is not there or has no marker.
func (s *Scene) Generation(n *lab.Node, slot string) int {
	s.T.Helper()
	generation, err := strconv.Atoi(s.Text(n, fmt.Sprintf(
		"SELECT coalesce(max((marker).generation), 0) FROM slotkeeper.slots() WHERE name = '%s'", slot)))
	s.OK(err)
	return generation
}

// Pins is the catalog_xmin of a slot as it is in effect, 0 for none: one that is
// raised shows the new one while it is being saved, and VACUUM still goes by the old.
func (s *Scene) Pins(n *lab.Node, slot string) cluster.XID {
	s.T.Helper()
	var xmin uint32
	s.OK(n.QueryRow(s.Ctx, "SELECT coalesce(max(effective_catalog_xmin::text::bigint), 0) FROM slotkeeper.slots() WHERE name = $1", slot).Scan(&xmin))
	return cluster.XID(xmin)
}

// FeedbackPins waits until the physical slot of a standby on the primary pins
// catalog rows, or pins none.
func (s *Scene) FeedbackPins(standby *lab.Node, pins bool) {
	s.T.Helper()
	s.Wait(fmt.Sprintf("feedback of %s to pin rows: %t", standby.Name(), pins), func() (bool, string) {
		xmin := s.Text(s.A, fmt.Sprintf("SELECT coalesce(catalog_xmin, xmin)::text FROM pg_replication_slots WHERE slot_name = '%s'", standby.SlotName()))
		return (xmin != "") == pins, "it pins from " + xmin
	})
}

// Feedback sets hot_standby_feedback on all standbys, and waits until the physical
// slot of b says so.
func (s *Scene) Feedback(value string) {
	s.T.Helper()
	for _, n := range s.Nodes()[1:] {
		s.OK(n.Set(s.Ctx, map[string]string{"hot_standby_feedback": value}))
	}
	s.FeedbackPins(s.B, value == "on")
}

// Background gives the process id of one of the server's own processes.
func (s *Scene) Background(n *lab.Node, kind string) int {
	s.T.Helper()
	pid, err := strconv.Atoi(s.Text(n, fmt.Sprintf("SELECT max(pid) FROM pg_stat_activity WHERE backend_type = '%s'", kind)))
	s.OK(err)
	return pid
}

// CrashBackend kills one backend (SIGKILL), upon which the postmaster ends all
// others and recovers, and waits until the server takes connections again.
func (s *Scene) CrashBackend(n *lab.Node) {
	s.T.Helper()
	session := s.Session(n)
	var pid int
	s.OK(session.conn.QueryRow(s.Ctx, "SELECT pg_backend_pid()").Scan(&pid))
	s.Crash(n, func() { s.Kill9(pid) })
}

// Crash does something upon which the postmaster ends all backends, and waits
// until it has and the server takes connections again.
func (s *Scene) Crash(n *lab.Node, kill func()) {
	s.T.Helper()
	session := s.Session(n)
	kill()
	s.Wait("the sessions on "+n.Name()+" to end", func() (bool, string) {
		return session.conn.Ping(s.Ctx) != nil, "one answers"
	})
	s.Answers(n)
}

// Kill9 kills one process, unless it has ended.
func (s *Scene) Kill9(pid int) {
	s.T.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		s.OK(err)
	}
}

// Answers waits until a server, recovering from a crash, takes connections.
func (s *Scene) Answers(n *lab.Node) {
	s.T.Helper()
	s.Wait(n.Name()+" to take connections", func() (bool, string) {
		var one int
		err := n.QueryRow(s.Ctx, "SELECT 1").Scan(&one)
		return err == nil, fmt.Sprint(err)
	})
}
