package cases

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

const advanceAll = "SELECT count(pg_replication_slot_advance('s' || lpad(i::text, 2, '0'), pg_current_wal_lsn())) FROM generate_series(0, 19) i"

// C20: a transaction stays open while hundreds of megabytes of WAL are written,
// over which twenty slots stand, and the controller's role inherits settings with
// which nothing would work. What a cycle reads does not grow with the backlog,
// the lease is kept, the settings do not hold.
func TestC20LongTransactionAndInheritedTimeouts(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Lasts: 10 * time.Minute, Settings: map[string]string{"max_replication_slots": "30", "checkpoint_timeout": "1h"}})
	settings := map[string]string{
		"statement_timeout": "200ms", "lock_timeout": "1ms", "idle_in_transaction_session_timeout": "200ms",
		"default_transaction_read_only": "on", "default_transaction_isolation": "serializable",
	}
	if harness.Major(t) >= 14 {
		settings["idle_session_timeout"] = "200ms"
	}
	if harness.Major(t) >= 17 {
		settings["transaction_timeout"] = "200ms"
	}
	for name, value := range settings {
		s.Exec(s.A, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", lab.RoleName, name, value))
	}
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "s00")
	s.Exec(s.A, "SELECT pg_copy_logical_replication_slot('s00', 's' || lpad(i::text, 2, '0')) FROM generate_series(1, 19) i")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	var slots []string
	for i := range 20 {
		slots = append(slots, fmt.Sprintf("s%02d", i))
	}
	s.RunEvery(2*time.Second, "")
	first := s.Safe(slots)

	for _, n := range s.Nodes() {
		outlives(s, n, "waits longer than statement_timeout", "application_name = 'slotkeeper wait' AND state = 'active' AND now() - query_start > interval '1 s'")
		outlives(s, n, "idles longer than idle_session_timeout", "application_name = 'slotkeeper' AND state = 'idle' AND now() - state_change > interval '1 s'")
	}

	// All slots come to the record before it, and no further.
	s.Exec(s.A, "CHECKPOINT")
	s.Session(s.A).Exec("BEGIN; INSERT INTO t VALUES (0)")
	for range 2 {
		s.Exec(s.A, "CHECKPOINT")
		s.Exec(s.A, advanceAll)
	}
	follow := func() {
		for range 3 {
			s.Exec(s.A, "INSERT INTO t VALUES (0); SELECT pg_replication_slot_advance('s00', pg_current_wal_lsn())")
			s.Mirrored("s00", s.B)
		}
	}
	follow()
	before := perCycle(s, follow)
	from := s.Slot(s.A, "s00").Restart
	const backlog = 15 * 16 << 20
	for range 15 {
		s.Exec(s.A, "SELECT pg_logical_emit_message(false, 'c20', repeat('x', 16 * 1024 * 1024))")
	}
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.Exec(s.A, advanceAll)
	s.Safe(slots)
	after := perCycle(s, follow)
	t.Logf("a cycle reads %d bytes on %s and %d on %s, with %d bytes of WAL behind: %d and %d", before["a"], "a", before["b"], "b", backlog, after["a"], after["b"])
	if at := s.Slot(s.A, "s00"); at.Restart > from || at.Confirmed < from+backlog {
		t.Fatalf("the scene is not set: the slot is at %s, %s; restart_lsn was %s", at.Restart, at.Confirmed, from)
	}
	for name := range after {
		if after[name] > 2*before[name]+backlog/16 {
			t.Errorf("on %s a cycle read %d bytes, and reads %d with %d bytes of WAL behind", name, before[name], after[name], backlog)
		}
	}

	stuckBy(s, backlog)
	last := s.Safe(slots)
	if last.Leader.Epoch != first.Leader.Epoch {
		t.Errorf("the lease was lost: epoch %d, then %d", first.Leader.Epoch, last.Leader.Epoch)
	}
}

var stuck = regexp.MustCompile(`^restart_lsn of (s\d\d) has stood at (\S+) for \S+ while (\d+) bytes were confirmed beyond it: process (\d+) holds it, transaction (\d+), (\d+) transactions old, since `)

// stuckBy wants restart_lsn_stuck to name the open transaction: its process, its
// id and age, and how many bytes are read again because of it.
func stuckBy(s *harness.Scene, backlog int64) {
	s.T.Helper()
	said := s.Condition(plan.CondRestartStuck)
	s.T.Log(said.Message)
	found := stuck.FindStringSubmatch(said.Message)
	if found == nil {
		s.T.Fatalf("it says %q", said.Message)
	}
	holder := s.Text(s.A, "SELECT format('%s %s', pid, backend_xid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xid IS NOT NULL")
	if named := found[4] + " " + found[5]; named != holder || !strings.Contains(said.Hint, "pg_terminate_backend("+found[4]+")") {
		s.T.Errorf("it names %s, %s holds it; the hint is %q", named, holder, said.Hint)
	}
	if at := s.Slot(s.A, found[1]).Restart.String(); at != found[2] || found[1] != said.Subject {
		s.T.Errorf("it is about %s and names %s at %s, which is at %s", said.Subject, found[1], found[2], at)
	}
	// Both only grow.
	oldest := s.Text(s.A, "SELECT age(backend_xid) FROM pg_stat_activity WHERE pid = "+found[4])
	between(s, "the age", found[6], 1, oldest)
	between(s, "the bytes", found[3], backlog, s.Text(s.A, "SELECT pg_current_wal_insert_lsn() - '"+found[2]+"'"))
}

func between(s *harness.Scene, what, value string, least int64, most string) {
	s.T.Helper()
	is, err := strconv.ParseInt(value, 10, 64)
	s.OK(err)
	bound, err := strconv.ParseInt(most, 10, 64)
	s.OK(err)
	if is < least || is > bound {
		s.T.Errorf("%s is said to be %d, it is between %d and %d", what, is, least, bound)
	}
}

// outlives waits for a session of the controller that an inherited setting would have ended.
func outlives(s *harness.Scene, n *lab.Node, what, where string) {
	s.T.Helper()
	s.Wait("a session on "+n.Name()+" that "+what, func() (bool, string) {
		rows := s.Rows(n, "SELECT pid::text FROM pg_stat_activity WHERE usename = '"+lab.RoleName+"' AND "+where)
		return len(rows) > 0, "there is none"
	})
}

// perCycle gives how many bytes the controller's backends on each node read per
// cycle while something goes on: files, the WAL among them, and their sockets.
func perCycle(s *harness.Scene, during func()) map[string]int64 {
	s.T.Helper()
	doc, _ := s.Status()
	began, from := totalRead(s), doc.Cycle
	during()
	s.Cycles(2)
	doc, _ = s.Status()
	ended := totalRead(s)
	per := map[string]int64{}
	for name, bytes := range ended {
		per[name] = (bytes - began[name]) / int64(doc.Cycle-from)
	}
	return per
}

func totalRead(s *harness.Scene) map[string]int64 {
	s.T.Helper()
	total := map[string]int64{}
	for _, n := range s.Nodes() {
		for _, pid := range s.Workers(n) {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
			s.OK(err)
			for line := range strings.SplitSeq(string(text), "\n") {
				if count, ok := strings.CutPrefix(line, "rchar: "); ok {
					bytes, err := strconv.ParseInt(count, 10, 64)
					s.OK(err)
					total[n.Name()] += bytes
				}
			}
		}
	}
	return total
}
