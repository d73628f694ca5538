//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// failoversVariable names the environment variable that says how many failovers
// TestFailoversLoseNothing goes through, seedVariable the one with its seed.
const (
	failoversVariable = "SLOTKEEPER_FAILOVERS"
	seedVariable      = "SLOTKEEPER_SEED"
)

// The slots of the torture: one whose consumer always streams, one that is read
// only after a failover, and one of two phases, read by SQL.
const (
	streamed  = "orders"
	visited   = "audit"
	twoPhased = "prepared"
)

// Under overlapping short, long, nested and prepared transactions, changing
// catalogs and checkpoints the leader dies again and again, and consumers find
// their slot on whoever leads next, by themselves. Nothing that the last primary
// holds may be missing, each slot is SAFE again on all nodes after each failover,
// and uninstall leaves nothing of ours behind.
func TestFailoversLoseNothing(t *testing.T) {
	rounds := number(t, failoversVariable, 2)
	seed := uint64(number(t, seedVariable, int(time.Now().UnixNano()%1_000_000)))
	t.Logf("%d failovers, %s=%d", rounds, seedVariable, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := beginFor(t, 4*patience+time.Duration(rounds)*patience, map[string]any{
		"ignore_slots": covering(),
		"postgresql":   map[string]any{"parameters": map[string]any{"wal_keep_size": "512MB"}}, // what a returning primary is rewound with
	})
	leader := s.leader().Node()
	s.OK(lab.SetupLoad(s.Ctx, leader))
	s.Exec(leader, "SELECT pg_drop_replication_slot('cdc')")
	for _, slot := range []string{streamed, visited} {
		s.Exec(leader, fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", slot))
	}
	s.Exec(leader, fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'test_decoding', false, true)", twoPhased))
	load := lab.StartLoad(s.Ctx, leader, lab.DefaultLoad(seed))
	s.run()

	busy := s.read(streamed, time.Duration(1+rng.IntN(150))*time.Millisecond)
	rare := &reader{slot: visited, deliveries: lab.NewDeliveries(), bounds: map[int]cluster.LSN{}}
	phased := s.readPhased(twoPhased)
	all := []string{visited, streamed, twoPhased} // in the order of the alphabet
	var dark []time.Duration
	for round := range rounds {
		s.safe(all...)
		s.during(load, time.Duration(200+rng.IntN(3000))*time.Millisecond)
		from := busy.deliveries.Count()
		began := time.Now()
		var dead, next *lab.PatroniMember
		s.in(func(ctx context.Context) (err error) {
			dead, next, err = s.p.FailOver(ctx)
			return err
		})
		dark = append(dark, time.Since(began))
		fork, err := next.Node().Fork(s.Ctx)
		s.OK(err)
		load.Forked(fork)
		load.Retarget(next.Node())
		t.Logf("%d: %s is dead, %s leads %s later, from %s on", round+1, dead.Name(), next.Name(), dark[round].Round(time.Millisecond), fork)
		for _, slot := range all {
			if !s.Has(next.Node(), slot) {
				t.Fatalf("failover %d: slot %q is not on %s", round+1, slot, next.Name())
			}
		}
		s.until("rows to come from the new leader", func() (bool, string) {
			return busy.deliveries.Count() > from+100, busy.trouble()
		})
		s.visit(rare, load)
		s.in(dead.Start)
		s.in(s.p.WaitStreaming)
		s.in(dead.WaitReady)
	}
	s.safe(all...)
	s.settle(load, busy, rare, phased)
	t.Logf("time without a primary, the leader's lease revoked: %v", dark)
	s.leavesNothing(all)
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: want a number from 1 on", variable, text)
	}
	return n
}

// during lets the load work for a while.
func (s *scene) during(load *lab.Load, d time.Duration) {
	s.T.Helper()
	select {
	case <-time.After(d):
	case <-load.Failed():
		s.OK(load.Stop(s.Ctx))
	case <-s.Ctx.Done():
		s.OK(s.Ctx.Err())
	}
}

// settle ends the writers, has every slot read to its end, and holds what came
// against what the last primary has.
func (s *scene) settle(load *lab.Load, busy, rare *reader, phased *phasedReader) {
	s.T.Helper()
	s.OK(load.Stop(s.Ctx))
	leader := s.leader().Node()
	last := s.visit(rare, load)
	s.until("the last row", func() (bool, string) { return busy.deliveries.Has(last), busy.trouble() })
	busy.stop()
	phased.stop()
	s.OK(phased.take(s.Ctx, leader))

	truth, err := lab.ReadTruth(s.Ctx, leader, load, ^cluster.LSN(0))
	s.OK(err)
	for _, r := range []*reader{busy, rare} {
		account := r.deliveries.Account(r.slot, truth, lab.Bounds{Positions: r.bounds}, r.deliveries)
		s.T.Logf("slot %s: %d rows committed, %d delivered, %d duplicated, %d lost; %d messages, %d lost; %d rows came that ended with their primary",
			r.slot, account.Committed, account.Delivered, account.Duplicated, len(account.Lost), account.Messages, len(account.LostNotes), account.Gone)
		if !account.Clean() || account.Committed == 0 || account.Messages == 0 {
			s.T.Errorf("slot %s: lost rows %v, lost messages %v, %s", r.slot, account.Lost, account.LostNotes, strings.Join(account.Problems, "; "))
		}
	}
	phased.account(s, leader, load)
	s.T.Logf("%d rows were acknowledged, %d of them ended with their primary (asynchronous replication)", load.Acknowledged(), load.Unreplicated(truth))
}

// leavesNothing ends the controller, uninstalls, and looks for what is left.
func (s *scene) leavesNothing(slots []string) {
	s.T.Helper()
	config := s.Daemon.Config()
	s.StopDaemon()
	if r := harness.Command(s.T, s.Ctx, "uninstall", "--config", config); r.Code != 0 {
		s.T.Errorf("uninstall: %+v", r)
	}
	leader := s.leader().Node()
	for _, n := range s.p.Nodes() {
		left := s.Rows(n, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_name LIKE 'slotkeeper%' OR slot_type = 'logical' ORDER BY 1")
		var want []string // on the leader the consumers' own
		if n == leader {
			want = slots
		}
		if !slices.Equal(left, want) {
			s.T.Errorf("%s is left with %v, want %v", n.Name(), left, want)
		}
	}
	client, err := s.p.Etcd().Client(s.Ctx)
	s.OK(err)
	defer func() { s.OK(client.Close()) }()
	answer, err := client.Get(s.Ctx, "/slotkeeper/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	s.OK(err)
	for _, kv := range answer.Kvs {
		s.T.Errorf("etcd is left with the key %s", kv.Key)
	}
}
