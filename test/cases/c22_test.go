package cases

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// rotationVariable names the environment variable that says how many megabytes
// of WAL each turn of C22 writes; the full size is 500.
const rotationVariable = "SLOTKEEPER_ROTATION_MB"

const turns = 4

// C22: A to B to A to B with a consumer that goes on. The slot that a demoted
// primary was left with becomes a mirror; no row is missing; and nothing grows:
// neither slots nor WAL, on either node.
func TestC22Rotations(t *testing.T) {
	t.Parallel()
	segments := 8
	if text := os.Getenv(rotationVariable); text != "" {
		megabytes, err := strconv.Atoi(text)
		if err != nil || megabytes < 16 {
			t.Fatalf("%s=%s: want a number of megabytes, 16 or more", rotationVariable, text)
		}
		segments = megabytes / 16
	}
	settings := harness.SmallWAL()
	settings["autovacuum"] = "off"
	s := harness.Mirrored(t, harness.Options{Settings: settings})
	came := map[string]bool{}
	consume := func() {
		for _, row := range s.Get(s.A, "cdc") {
			came[row] = true
		}
	}
	written, slots := 0, ""
	for turn := range turns {
		if turn > 0 {
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.SwitchOver(s.B)
		}
		for range segments {
			written++
			s.Exec(s.A, fmt.Sprintf("INSERT INTO t VALUES (%d); SELECT pg_switch_wal()", written))
			consume()
		}
		bounded(s, consume)
		now := s.Text(s.A, "SELECT count(*) FROM pg_replication_slots") + " and " + s.Text(s.B, "SELECT count(*) FROM pg_replication_slots")
		if slots == "" {
			slots = now
		}
		if now != slots {
			t.Errorf("turn %d: there are %s slots, there were %s", turn, now, slots)
		}
		s.Exec(s.A, fmt.Sprintf("INSERT INTO t VALUES (%d)", -1-turn)) // for the consumer on the next primary
		s.Safe([]string{"cdc"})
	}
	consume()
	for i := -turns; i <= written; i++ {
		if row := fmt.Sprintf("table public.t: INSERT: id[integer]:%d", i); i != 0 && !came[row] {
			t.Errorf("row %d has not come", i)
		}
	}
}

// bounded waits until checkpoints, and a consumer that follows, have brought the
// WAL of both nodes down to what their settings allow: 48 MB are three files,
// beside those being written and made ready, and those since the slot moved last.
func bounded(s *harness.Scene, consume func()) {
	s.T.Helper()
	for _, n := range []*lab.Node{s.A, s.B} {
		s.Wait("the WAL on "+n.Name()+" to be bounded", func() (bool, string) {
			s.Exec(s.A, "INSERT INTO t VALUES (0); CHECKPOINT")
			consume()
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.Exec(s.B, "CHECKPOINT")
			count, err := strconv.Atoi(s.Text(n, "SELECT count(*) FROM pg_ls_waldir() WHERE name !~ '[.]'"))
			s.OK(err)
			kept := s.Rows(n, "SELECT slot_name || ' at ' || coalesce(restart_lsn::text, 'nothing') FROM pg_replication_slots")
			return count <= 7, fmt.Sprintf("it has %d files, and slots %s", count, strings.Join(kept, ", "))
		})
	}
}
