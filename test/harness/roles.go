package harness

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Leads lets A name the node that was just promoted, and its old name the former
// primary.
func (s *Scene) Leads(n *lab.Node) {
	s.T.Helper()
	for _, place := range s.standbys() {
		if *place == n {
			s.A, *place = n, s.A
			return
		}
	}
	s.T.Fatalf("%s is no standby of the scene", n.Name())
}

// Level lets the primary write nothing that the test does not ask for and all
// standbys receive what it has: none has more than another when it dies.
func (s *Scene) Level() {
	s.T.Helper()
	s.Still(s.A)
	for _, n := range s.Nodes()[1:] {
		if n.Running() {
			s.OK(n.WaitReceived(s.Ctx, s.A))
		}
	}
}

// SwitchOver ends the primary in order, promotes a standby that has all, and
// lets all others stand by it. A names the new primary then, and the standby's
// name the old one, which keeps its logical slots.
func (s *Scene) SwitchOver(to *lab.Node) {
	s.T.Helper()
	old := s.A
	for _, n := range s.Nodes()[1:] {
		s.OK(n.WaitStreaming(s.Ctx)) // what streams gets all before a primary ends
	}
	s.OK(old.StopFast(s.Ctx))
	s.OK(to.Promote(s.Ctx))
	s.Leads(to)
	for _, n := range s.Nodes()[1:] {
		s.OK(n.Follow(s.Ctx, to))
	}
	s.OK(old.Start(s.Ctx))
	for _, n := range s.Nodes()[1:] {
		s.OK(n.WaitStreaming(s.Ctx))
	}
	s.dropUnused(old)
}

// Behind makes a node stand by A: one that has more WAL than A's timeline began
// with, or that is down, is rewound, by which it loses its slots.
func (s *Scene) Behind(n *lab.Node) {
	s.T.Helper()
	if n.Running() {
		fork, err := s.A.Fork(s.Ctx)
		s.OK(err)
		received, err := n.ReceivedLSN(s.Ctx)
		s.OK(err)
		if received <= fork {
			s.OK(n.Follow(s.Ctx, s.A))
			s.OK(n.WaitStreaming(s.Ctx))
			return
		}
		s.OK(n.StopFast(s.Ctx))
	}
	s.OK(n.Rewind(s.Ctx, s.A))
	s.OK(n.Start(s.Ctx))
	s.OK(n.WaitStreaming(s.Ctx))
	s.dropUnused(n)
}

// dropUnused removes from a node that is a standby now what its own standbys
// streamed through: such a slot keeps WAL for ever, and is its operator's.
func (s *Scene) dropUnused(n *lab.Node) {
	s.T.Helper()
	s.Exec(n, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'lab\\_%' AND NOT active")
}

// KeepingSlots does something to a stopped node by which it would lose its
// slots, and puts them back, as a tool does that leaves pg_replslot alone.
func (s *Scene) KeepingSlots(n *lab.Node, do func()) {
	s.T.Helper()
	slots := filepath.Join(n.DataDir(), "pg_replslot")
	aside := n.DataDir() + ".slots"
	s.OK(os.Rename(slots, aside))
	s.OK(os.Mkdir(slots, 0o700))
	s.own(slots)
	do()
	s.OK(os.RemoveAll(slots))
	s.OK(os.Rename(aside, slots))
}

// Stream puts a network between a standby and the primary.
func (s *Scene) Stream(n *lab.Node) *lab.Link {
	s.T.Helper()
	link, err := lab.NewLink(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.A.Port())))
	s.OK(err)
	s.T.Cleanup(link.Close)
	_, port, err := net.SplitHostPort(link.Addr())
	s.OK(err)
	conninfo := s.Text(n, "SELECT current_setting('primary_conninfo')")
	s.OK(n.Set(s.Ctx, map[string]string{"primary_conninfo": strings.Replace(conninfo, fmt.Sprintf("port=%d", s.A.Port()), "port="+port, 1)}))
	s.Wait(n.Name()+" to stream through the link", func() (bool, string) {
		at := s.Text(n, "SELECT max(sender_port) FROM pg_stat_wal_receiver WHERE status = 'streaming'")
		return at == port, "it streams from port " + at
	})
	return link
}
