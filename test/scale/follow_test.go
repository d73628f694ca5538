package scale

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// program builds slotkeeper.
func program(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "slotkeeper")
	text, err := exec.Command("go", "build", "-o", path, "github.com/slotkeeper/slotkeeper/cmd/slotkeeper").CombinedOutput()
	if err != nil {
		b.Fatalf("building slotkeeper: %v\n%s", err, text)
	}
	return path
}

// pairOfServers is a primary with one standby, and twenty slots of each kind.
func pairOfServers(ctx context.Context, b *testing.B, bin string, settings map[string]string) (*lab.Cluster, *lab.Node, *lab.Node) {
	b.Helper()
	l, err := lab.NewCluster(ctx, lab.Options{BinDir: bin, Settings: settings})
	ok(b, err)
	b.Cleanup(func() { ok(b, l.Close()) })
	primary, err := l.AddPrimary(ctx, "a")
	ok(b, err)
	ok(b, lab.SetupRole(ctx, primary))
	standby, err := l.AddStandby(ctx, "b", primary, lab.StandbyOptions{})
	ok(b, err)
	return l, primary, standby
}

// BenchmarkFollow has forty slots of one server of 17 move at the same time:
// twenty that slotkeeper mirrors, and twenty failover slots that the server's own
// worker synchronizes. It reports how long after a move the last of the twenty has
// followed on the standby, which has replayed all before: the median and the 99th
// of a hundred. The clock starts when the last slot has moved: what followed the
// first ones meanwhile counts as followed at once. Run it with -benchtime=100x.
func BenchmarkFollow(b *testing.B) {
	ctx := b.Context()
	bin, err := lab.FindPG(17)
	ok(b, err)
	settings := harness.Still()
	settings["max_replication_slots"] = "60"
	settings["hot_standby_feedback"], settings["sync_replication_slots"] = "on", "on"
	l, primary, standby := pairOfServers(ctx, b, bin, settings)
	ok(b, primary.Exec(ctx, "CREATE TABLE t (id int)"))
	ok(b, primary.Exec(ctx, `SELECT count(pg_create_logical_replication_slot('p' || lpad(i::text, 2, '0'), 'test_decoding')) FROM generate_series(0, 19) i;
		SELECT count(pg_create_logical_replication_slot('f' || lpad(i::text, 2, '0'), 'test_decoding', false, false, true)) FROM generate_series(0, 19) i`))
	_, err = l.StartDaemon(lab.DaemonOptions{Binary: program(b), Members: []*lab.Node{primary, standby}})
	ok(b, err)
	on, err := standby.Connect(ctx, "", "")
	ok(b, err)
	defer on.Close(context.Background())

	took := map[string][]time.Duration{}
	round := func() map[string]time.Duration {
		ok(b, primary.Exec(ctx, "INSERT INTO t VALUES (0); SELECT pg_log_standby_snapshot()"))
		ok(b, standby.WaitCatchup(ctx, primary))
		var to string
		ok(b, primary.Exec(ctx, "SELECT count(pg_replication_slot_advance(slot_name, pg_current_wal_lsn())) FROM pg_replication_slots WHERE slot_type = 'logical'"))
		ok(b, primary.QueryRow(ctx, "SELECT min(confirmed_flush_lsn)::text FROM pg_replication_slots WHERE slot_type = 'logical'").Scan(&to))
		return followed(ctx, b, on, to)
	}
	for begun := time.Now(); len(took) == 0; { // until both keep up
		seen := round()
		if len(seen) == 2 {
			took["p"], took["f"] = nil, nil
		} else if time.Since(begun) > 3*time.Minute {
			b.Fatalf("after three minutes only %v follow", seen)
		}
	}
	for b.Loop() {
		for kind, d := range round() {
			took[kind] = append(took[kind], d)
		}
	}
	for kind, name := range map[string]string{"p": "slotkeeper", "f": "worker-of-17"} {
		all := took[kind]
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2])/1e6, name+"-median-ms")
		b.ReportMetric(float64(all[len(all)*99/100])/1e6, name+"-p99-ms")
	}
}

// followed gives, for each kind of slot, when all twenty were seen at a position
// or beyond it; a kind that has not come in five seconds is left out.
func followed(ctx context.Context, b *testing.B, standby *pgx.Conn, to string) map[string]time.Duration {
	b.Helper()
	const sql = `SELECT left(slot_name, 1), count(*) FILTER (WHERE confirmed_flush_lsn >= $1::text::pg_lsn)
		FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary GROUP BY 1`
	begun, seen := time.Now(), map[string]time.Duration{}
	for len(seen) < 2 && time.Since(begun) < 5*time.Second {
		rows, err := standby.Query(ctx, sql, to)
		ok(b, err)
		now := time.Since(begun)
		var kind string
		var count int
		_, err = pgx.ForEachRow(rows, []any{&kind, &count}, func() error {
			if _, before := seen[kind]; !before && count == 20 {
				seen[kind] = now
			}
			return nil
		})
		ok(b, err)
		time.Sleep(time.Millisecond)
	}
	return seen
}
