package cases

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// refused runs sync with a configuration and wants it to end with a code, to say
// what is wrong and what to do, and no password of the role's.
func refused(s *harness.Scene, config string, code int, texts ...string) harness.Result {
	s.T.Helper()
	r := harness.Command(s.T, s.Ctx, "sync", "--config", config)
	if r.Code != code {
		s.T.Errorf("sync ends with %d, want %d:\n%s%s", r.Code, code, r.Stdout, r.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stdout+r.Stderr, text) {
			s.T.Errorf("no %q in\n%s%s", text, r.Stdout, r.Stderr)
		}
	}
	return r
}

// left is all that slotkeeper could have left on a node: slots, markers, fence.
func left(s *harness.Scene, n *lab.Node) []string {
	s.T.Helper()
	all := s.Rows(n, "SELECT slot_name::text FROM pg_replication_slots ORDER BY 1")
	for _, pattern := range []string{"slotkeeper*", "*/slotkeeper*"} {
		files, err := filepath.Glob(filepath.Join(n.DataDir(), "pg_replslot", pattern))
		s.OK(err)
		all = append(all, files...)
	}
	return all
}

func untouched(s *harness.Scene, n *lab.Node, before []string) {
	s.T.Helper()
	if now := left(s, n); !slices.Equal(now, before) {
		s.T.Errorf("%s was touched: it had %q, it has %q", n.Name(), before, now)
	}
}

// Another cluster's server among the members is named and never written, and
// the others go on.
func TestBadInputAnotherCluster(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Logical(s.A, "cdc")
	x, err := s.Lab.AddPrimary(s.Ctx, "x")
	s.OK(err)
	s.OK(lab.SetupRole(s.Ctx, x))
	s.Logical(x, "cdc")
	before := left(s, x)
	ours := s.Text(s.A, "SELECT system_identifier FROM pg_control_system()")
	theirs := s.Text(x, "SELECT system_identifier FROM pg_control_system()")

	// Two of one cluster tell which is the right one.
	config := s.Config(harness.Postgres{}, s.A, s.B, x)
	refused(s, config, 3, "wrong_endpoint", "1 of 2 pairs", ours, theirs, "mend the member's conninfo", "member x")
	untouched(s, x, before)
	if !s.Has(s.B, "cdc") {
		t.Error("b got no mirror")
	}

	// One of each does not, where nothing is remembered.
	fresh := left(s, s.A)
	refused(s, s.Config(harness.Postgres{}, s.A, x), 4, "the members belong to different clusters")
	untouched(s, x, before)
	untouched(s, s.A, fresh)

	// And what is remembered is not given up: this ledger is the first cluster's.
	s.Reconfigure(config, harness.Postgres{}, x)
	refused(s, config, 3, "no member takes writes", "wrong_endpoint", "member x", theirs)
	untouched(s, x, before)
}

// What keeps the controller from reading is said with what to do, by role, host
// and database, and nothing is changed.
func TestBadInputUnreadable(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Logical(s.A, "cdc")
	s.Exec(s.A, "CREATE DATABASE bare")
	s.Exec(s.A, "CREATE ROLE nobody LOGIN PASSWORD 'hunter2'")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	onA, onB := left(s, s.A), left(s, s.B)
	host := fmt.Sprintf("127.0.0.1:%d", s.A.Port())
	version := s.Text(s.A, "SELECT extversion FROM pg_extension WHERE extname = 'slotkeeper'")

	refused(s, s.Config(harness.Postgres{Database: "bare"}), 4, host, `"bare"`, "CREATE EXTENSION slotkeeper;")
	refused(s, s.Config(harness.Postgres{Database: "gone"}), 4, `"gone"`, "postgres.dbname")
	r := refused(s, s.Config(harness.Postgres{User: "nobody"}), 4, host, `role "nobody"`, "pg_monitor", `ALTER ROLE "nobody" LOGIN REPLICATION;`)
	if strings.Contains(r.Stdout+r.Stderr, "hunter2") {
		t.Error("a password is shown")
	}
	s.Exec(s.A, "UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'slotkeeper'")
	refused(s, s.Config(harness.Postgres{}), 4, host, "version 0.9", "version "+version, "ALTER EXTENSION slotkeeper UPDATE;")
	untouched(s, s.A, onA)
	untouched(s, s.B, onB)
	s.Exec(s.A, "UPDATE pg_extension SET extversion = '"+version+"' WHERE extname = 'slotkeeper'")
	refused(s, s.Config(harness.Postgres{}), 0, "1 of 1 pairs")
}

// One standby that does not let the role in: its pairs are UNKNOWN, with the
// hint of the session that was refused, and the other standby's are SAFE.
func TestBadInputNoHBALineOnAStandby(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2})
	s.Logical(s.A, "cdc")
	s.LockOut(s.B, lab.RoleName)
	onB := left(s, s.B)
	s.Run()
	s.Safe([]string{"cdc"}, s.C)
	p := s.Verdict("cdc", s.B, plan.Unknown, plan.ReasonNoPrivilege)
	for _, want := range []string{"pg_hba.conf", fmt.Sprintf("127.0.0.1:%d", s.B.Port()), lab.RoleName} {
		if !strings.Contains(p.Hint, want) {
			t.Errorf("no %q in the hint %q", want, p.Hint)
		}
	}
	doc, _ := s.Status()
	for _, m := range doc.Members {
		if m.Node == "b" && m.Hint != p.Hint {
			t.Errorf("the member's hint is %q", m.Hint)
		}
	}
	if r := s.Slotkeeper("status", "-o", "json"); r.Code != 4 || !json.Valid([]byte(r.Stdout)) {
		t.Errorf("status ends with %d", r.Code)
	}
	untouched(s, s.B, onB)
}
