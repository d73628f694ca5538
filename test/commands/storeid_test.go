package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Where etcd holds what is no store's id, whoever would lead says which key it is
// and what mends it, and no node is touched.
func TestADamagedStoreIDIsNamed(t *testing.T) {
	s := harness.New(t, harness.Options{Standbys: 1})
	s.Logical(s.A, "cdc")
	etcd := s.Etcd(lab.EtcdOptions{Members: 1})
	with := lab.DaemonOptions{Etcd: etcd.Section(nil)}
	s.RunWith(with)
	s.Safe([]string{"cdc"})
	w := &stage{s, s.Daemon.Config()}
	s.StopDaemon()

	s.OK(etcd.Put(s.Ctx, "/slotkeeper/lab/id", "rub\x1bbish"))
	for _, command := range []string{"uninstall", "sync", "forget b"} {
		w.want(1, command, `the key /slotkeeper/lab/id holds "rub\x1bbish"`, "slotkeeper run --take-over")
	}
	if got := w.slots(s.B); !slices.Contains(got, "cdc") {
		t.Errorf("b has the slots %v", got)
	}
	s.RunWith(with)
	s.Wait("the daemon to say so", func() (bool, string) {
		log := s.Daemon.LogTail(20)
		return strings.Contains(log, "the key /slotkeeper/lab/id holds"), log
	})
	s.StopDaemon()

	with.Args = []string{"--take-over"}
	s.RunWith(with)
	s.Safe([]string{"cdc"})
	s.StopDaemon()
	w.want(0, "uninstall", "mirror cdc", "ledger")
}
