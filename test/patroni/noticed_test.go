//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// BenchmarkLeaderChange changes Patroni's leader key in etcd and reports the median and
// the longest time until the daemon's loop is in a cycle that knows it: while nothing
// moves, and while a consumer confirms all the time and cycles follow one another. The
// Patronis stand still, so that nobody else writes their keys. Run it with
// -benchtime=200x.
func BenchmarkLeaderChange(b *testing.B) {
	w := newWatched(b)
	b.Run("idle", func(b *testing.B) { w.changes(b, w.atRest) })
	stop := w.busy(b)
	defer stop()
	b.Run("busy", func(b *testing.B) { w.changes(b, func(*testing.B) {}) })
}

// watched is a cluster whose Patronis are frozen, and the daemon beside it.
type watched struct {
	p      *lab.Patroni
	leader *lab.PatroniMember
	names  []string // whom the key names, in turn
	daemon *lab.Daemon
}

func newWatched(b *testing.B) *watched {
	b.Helper()
	ctx, version := b.Context(), os.Getenv(versionVariable)
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	major, err := lab.PatroniMajor(version)
	must(err)
	bin, err := lab.FindPG(major)
	must(err)
	l, err := lab.NewCluster(ctx, lab.Options{BinDir: bin})
	must(err)
	b.Cleanup(func() { must(l.Close()) })
	w := &watched{}
	w.p, err = l.StartPatroni(ctx, lab.PatroniOptions{Version: version, Sample: sample(b, version), Config: map[string]any{"ignore_slots": covering()}})
	must(err)
	b.Cleanup(func() { must(w.p.Close()) })
	w.leader, err = w.p.Leader(ctx)
	must(err)
	must(lab.SetupRole(ctx, w.leader.Node()))
	must(w.leader.Node().Exec(ctx, "CREATE TABLE t (id int)"))
	must(w.leader.Node().Exec(ctx, "SELECT pg_create_logical_replication_slot('cdc', 'test_decoding')"))
	var standbys []string
	for _, m := range w.p.Members() {
		must(m.Freeze())
		w.names = append(w.names, m.Name())
		if m != w.leader {
			standbys = append(standbys, m.Name())
		}
	}
	keys, err := w.p.Keys(ctx)
	must(err)
	for name, value := range keys {
		must(w.p.Put(ctx, name, value)) // without a lease that would end
	}
	w.daemon, err = l.StartDaemon(lab.DaemonOptions{Binary: harness.Binary(b), Patroni: w.p})
	must(err)
	_, err = w.daemon.WaitSafe(ctx, []string{"cdc"}, standbys, nil)
	must(err)
	return w
}

func (w *watched) changes(b *testing.B, before func(*testing.B)) {
	client, err := w.p.Etcd().Client(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Close() }() // nothing hangs on it
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		before(b)
		name := w.names[i%len(w.names)]
		if now, err := w.p.LeaderKey(b.Context()); err != nil || now == name {
			name = w.names[(i+1)%len(w.names)]
		}
		known := w.known(b, name)
		begun := time.Now()
		if _, err := client.Put(b.Context(), "/service/"+w.p.Scope()+"/leader", name); err != nil {
			b.Fatal(err)
		}
		for w.known(b, name) == known {
			if time.Since(begun) > time.Minute {
				b.Fatalf("the daemon does not notice that %s leads; its last messages:\n%s", name, w.daemon.LogTail(10))
			}
			time.Sleep(500 * time.Microsecond)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
	b.ReportMetric(float64(took[len(took)-1])/1e6, "worst-ms")
}

// known counts the cycles that have found another leader, and that one.
func (w *watched) known(b *testing.B, name string) int {
	b.Helper()
	count := 0
	for line := range strings.SplitSeq(w.daemon.LogTail(1<<20), "\n") {
		if strings.Contains(line, `"@message":"leader"`) && strings.Contains(line, fmt.Sprintf(`"leader":%q`, name)) {
			count++
		}
	}
	return count
}

// atRest waits until the last change is no longer followed by cycles.
func (w *watched) atRest(b *testing.B) {
	b.Helper()
	for last, since := uint64(0), time.Now(); time.Since(since) < 200*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		doc, err := harness.StatusOf(b.Context(), w.daemon)
		if err != nil {
			b.Fatal(err)
		}
		if doc.Cycle != last {
			last, since = doc.Cycle, time.Now()
		}
	}
}

// busy writes and consumes until it is stopped.
func (w *watched) busy(b *testing.B) (stop func()) {
	ctx, end := context.WithCancel(b.Context())
	var work sync.WaitGroup
	for _, sql := range []string{"INSERT INTO t VALUES (1)", "SELECT count(*) FROM pg_logical_slot_get_changes('cdc', NULL, NULL)"} {
		work.Go(func() {
			conn, err := w.leader.Node().Connect(ctx, "", "")
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the server ends with the test
			for ctx.Err() == nil {
				if _, err := conn.Exec(ctx, sql); err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
			}
		})
	}
	return func() { end(); work.Wait() }
}
