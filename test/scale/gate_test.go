package scale

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// BenchmarkGate asks the gate of a standby with twenty mirrors after the primary's
// end, and reports the median and the longest of what that adds to a promotion: from
// the start of the process to its end. The primary is gone, or its host is and
// nothing answers there any more; the standby is safe, or it is not and the other one
// has to be asked. Run it with -benchtime=50x.
func BenchmarkGate(b *testing.B) {
	ctx := b.Context()
	bin, err := serverPrograms()
	ok(b, err)
	settings := harness.Still()
	settings["max_replication_slots"] = "60"
	l, primary, standby := pairOfServers(ctx, b, bin, settings)
	other, err := l.AddStandby(ctx, "c", primary, lab.StandbyOptions{})
	ok(b, err)
	etcd, err := lab.StartEtcd(ctx, lab.EtcdOptions{Members: 1})
	ok(b, err)
	defer func() { ok(b, etcd.Close()) }()
	var slots []string
	for i := range 20 {
		slots = append(slots, fmt.Sprintf("s%02d", i))
		ok(b, primary.Exec(ctx, "SELECT pg_create_logical_replication_slot('"+slots[i]+"', 'test_decoding')"))
	}
	binary := program(b)
	d, err := l.StartDaemon(lab.DaemonOptions{Binary: binary, Members: []*lab.Node{primary, standby, other}, Etcd: etcd.Section(nil)})
	ok(b, err)
	_, err = d.WaitSafe(ctx, slots, []string{"b", "c"}, nil)
	ok(b, err)
	ok(b, d.Stop(ctx))
	ok(b, primary.Freeze())
	b.Run("primary-silent", func(b *testing.B) { gates(b, 0, "b can serve 20 slots", binary, d.Config()) })
	ok(b, primary.Thaw())
	ok(b, primary.Kill(ctx))
	b.Run("primary-gone", func(b *testing.B) { gates(b, 0, "b can serve 20 slots", binary, d.Config()) })
	ok(b, standby.Exec(ctx, "SELECT pg_drop_replication_slot('s00')"))
	b.Run("unsafe", func(b *testing.B) { gates(b, 3, "c loses nothing", binary, d.Config()) })
}

func gates(b *testing.B, code int, says, binary, config string) {
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		cmd := exec.Command(binary, "gate", "--dry-run", "--config", config, "--node", "b")
		said, _ := cmd.CombinedOutput() // the code says it
		took = append(took, time.Since(begun))
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(said), says) {
			b.Fatalf("it ends with %d and says %s", got, said)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
	b.ReportMetric(float64(took[len(took)-1])/1e6, "worst-ms")
}
