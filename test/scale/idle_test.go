package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// BenchmarkIdle has the daemon keep slots on five standbys while nothing moves, and
// reports per minute what its process and its backends take of the processor, and
// how many statements they run. Run it with -benchtime=1x.
func BenchmarkIdle(b *testing.B) {
	for _, count := range []int{1, 20, 200} {
		b.Run(strconv.Itoa(count), func(b *testing.B) { idle(b, count) })
	}
}

func idle(b *testing.B, count int) {
	ctx := b.Context()
	bin, err := serverPrograms()
	ok(b, err)
	settings := harness.Still()
	settings["max_replication_slots"], settings["log_statement"], settings["log_line_prefix"] = "250", "all", "%u "
	l, err := lab.NewCluster(ctx, lab.Options{BinDir: bin, Settings: settings})
	ok(b, err)
	defer func() { ok(b, l.Close()) }()
	primary, err := l.AddPrimary(ctx, "a")
	ok(b, err)
	ok(b, lab.SetupRole(ctx, primary))
	nodes, names, slots := []*lab.Node{primary}, []string{}, []string{"s000"}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		n, err := l.AddStandby(ctx, name, primary, lab.StandbyOptions{})
		ok(b, err)
		nodes, names = append(nodes, n), append(names, name)
	}
	ok(b, primary.Exec(ctx, "SELECT pg_create_logical_replication_slot('s000', 'test_decoding')"))
	for i := 1; i < count; i++ {
		slots = append(slots, fmt.Sprintf("s%03d", i))
		ok(b, primary.Exec(ctx, "SELECT pg_copy_logical_replication_slot('s000', $1)", slots[i]))
	}
	d, err := l.StartDaemon(lab.DaemonOptions{Binary: program(b), Members: nodes})
	ok(b, err)
	_, err = d.WaitSafe(ctx, slots, names, nil)
	ok(b, err)
	time.Sleep(10 * time.Second) // what the beginning sets off is over

	for b.Loop() {
		daemon, backends, statements := daemonTime(b, d), sessionTime(b, nodes), logged(b, nodes)
		begun := time.Now()
		time.Sleep(30 * time.Second)
		perMinute := float64(time.Minute) / float64(time.Since(begun))
		b.ReportMetric((daemonTime(b, d)-daemon).Seconds()*perMinute, "daemon-cpu-s/min")
		b.ReportMetric((sessionTime(b, nodes)-backends).Seconds()*perMinute, "backends-cpu-s/min")
		b.ReportMetric(float64(logged(b, nodes)-statements)*perMinute/float64(len(nodes)), "statements/min/node")
	}
}

// logged counts the statements of the controller in the servers' logs.
func logged(b *testing.B, nodes []*lab.Node) (count int) {
	b.Helper()
	for _, n := range nodes {
		text, err := os.ReadFile(n.LogFile())
		ok(b, err)
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.HasPrefix(line, lab.RoleName+" LOG:  execute") || strings.HasPrefix(line, lab.RoleName+" LOG:  statement") {
				count++
			}
		}
	}
	return count
}

func sessionTime(b *testing.B, nodes []*lab.Node) (total time.Duration) {
	b.Helper()
	for _, n := range nodes {
		pids, err := n.DB("").Strings(b.Context(), "SELECT pid::text FROM pg_stat_activity WHERE usename = '"+lab.RoleName+"'")
		ok(b, err)
		for _, pid := range pids {
			total += onCPU(b, pid)
		}
	}
	return total
}

// daemonTime is that of all threads of the one process that has the daemon's configuration.
func daemonTime(b *testing.B, d *lab.Daemon) (total time.Duration) {
	b.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ok(b, err)
	for _, path := range commands {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), d.Config()) {
			continue // it has ended, or is another one
		}
		threads, err := filepath.Glob(filepath.Join(filepath.Dir(path), "task", "*"))
		ok(b, err)
		for _, thread := range threads {
			total += onCPU(b, strings.TrimPrefix(thread, "/proc/"))
		}
	}
	return total
}

// onCPU is the processor's time of a process's first thread, or of the thread at a path.
func onCPU(b *testing.B, process string) time.Duration {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", process, "schedstat"))
	ok(b, err)
	took, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	ok(b, err)
	return time.Duration(took)
}
