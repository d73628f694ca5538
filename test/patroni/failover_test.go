//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// failover is what came of one death of the leader.
type failover struct {
	dead, leader *lab.PatroniMember
	answers      []string // of the gates, each after the name of its member
	received     map[string]cluster.LSN
	took         time.Duration // from the loss of the leader key to the next primary
}

// failover kills the leader with its server, and takes its key away once all has
// arrived that it had sent.
func (s *scene) failover() failover {
	s.T.Helper()
	f := failover{dead: s.leader(), received: map[string]cluster.LSN{}}
	logged := map[*lab.PatroniMember]int{}
	for _, m := range s.p.Others(f.dead) {
		logged[m] = len(gateLines(m))
	}
	s.in(f.dead.Kill)
	for _, m := range s.p.Others(f.dead) {
		f.received[m.Name()] = s.received(m)
	}
	began := time.Now()
	s.in(s.p.RevokeLeader)
	f.leader = s.leader()
	f.took = time.Since(began)
	for _, m := range s.p.Others(f.dead) {
		for _, line := range gateLines(m)[logged[m]:] {
			f.answers = append(f.answers, m.Name()+": "+line)
		}
	}
	s.T.Logf("%s was killed, %s leads after %s; %s", f.dead.Name(), f.leader.Name(), f.took.Round(10*time.Millisecond), strings.Join(f.answers, "; "))
	return f
}

// received is how much WAL a standby has, once no more arrives from a dead leader.
func (s *scene) received(m *lab.PatroniMember) cluster.LSN {
	s.T.Helper()
	s.until("the walreceiver of "+m.Name()+" to end", func() (bool, string) {
		return s.Text(m.Node(), "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'") == "0", "it streams"
	})
	at, err := cluster.ParseLSN(s.Text(m.Node(), "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())"))
	s.OK(err)
	return at
}

func gateLines(m *lab.PatroniMember) []string {
	var lines []string
	for line := range strings.Lines(m.LogTail(1 << 20)) {
		if _, said, ok := strings.Cut(line, "slotkeeper: gate: "); ok {
			lines = append(lines, strings.TrimSpace(said))
		}
	}
	return lines
}

func (f failover) refusals() int {
	n := 0
	for _, a := range f.answers {
		if strings.Contains(a, ": refuse") {
			n++
		}
	}
	return n
}

// back starts the dead member again, and waits until all is as before.
func (s *scene) back(f failover) {
	s.T.Helper()
	s.in(f.dead.Start)
	s.in(s.p.WaitStreaming)
	s.in(f.dead.WaitReady)
}

// write inserts rows and waits until all standbys have them.
func (s *scene) write(from, to int, standbys ...*lab.PatroniMember) {
	s.T.Helper()
	leader := s.leader().Node()
	s.Exec(leader, fmt.Sprintf("INSERT INTO t SELECT generate_series(%d, %d)", from, to))
	for _, m := range standbys {
		s.in(func(ctx context.Context) error { return m.Node().WaitReceived(ctx, leader) })
	}
}

// key waits until one of Patroni's keys has some text in it.
func (s *scene) key(name, text string) {
	s.T.Helper()
	s.until("key "+name+" to say "+text, func() (bool, string) {
		now, err := s.p.Key(s.Ctx, name)
		return err == nil && strings.Contains(now, text), now
	})
}
