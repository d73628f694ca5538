//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C42: what the controller's watch of Patroni's keys would go on from is compacted
// away while it is cut off: once before the role changes, once after it has. Neither
// change is missed.
func TestC42CompactionBesideARoleChange(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]any{"ignore_slots": covering()})
	etcd := s.p.Etcd()
	link, err := lab.NewLink(etcd.Members()[0].Addr())
	s.OK(err)
	t.Cleanup(link.Close)
	s.Daemon, err = s.Lab.StartDaemon(lab.DaemonOptions{
		Binary: harness.Binary(t), Patroni: s.p, Etcd: etcd.Section([]string{"http://" + link.Addr()}, "lease_ttl: 10m"), More: "log: {level: debug}\n",
	})
	s.OK(err)
	s.safe("cdc")

	for i, cut := range []struct {
		name          string
		before, after func() // of the change
	}{
		{"compacted before the change",
			func() { link.Cut(); s.compacted(); link.Heal() }, func() {}},
		{"compacted after the change",
			link.Cut, func() { s.compacted(); link.Heal() }},
	} {
		next := s.p.Others(s.leader())[0]
		cut.before()
		s.in(func(ctx context.Context) error { return s.p.Switchover(ctx, next) })
		cut.after()
		s.until("the watch to have been compacted away", func() (bool, string) {
			times := strings.Count(s.Daemon.LogTail(1<<20), "the watch ended, reading again")
			return times > i, fmt.Sprintf("%d watches were", times)
		})
		s.until(cut.name+": the controller to see "+next.Name()+" lead", func() (bool, string) {
			doc, ok := s.Status()
			return ok && doc.Primary != nil && doc.Primary.Node == next.Name(), "it does not"
		})
		s.in(s.p.WaitStreaming)
		s.safe("cdc")
		s.untold(plan.CondSplitBrain)
	}
}

// compacted writes keys beside Patroni's own and has etcd forget all history: the cut-off
// watch is behind what etcd still has.
func (s *scene) compacted() {
	s.T.Helper()
	for range 3 {
		s.in(func(ctx context.Context) error { return s.p.Put(ctx, "slotkeeper-test", "x") })
	}
	s.in(s.p.Etcd().Compact)
}
