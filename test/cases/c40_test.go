package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C40: the conninfo of a standby leads to another server, or its role lacks
// something. That standby is never SAFE meanwhile, the sentence says which role at
// which address, the other standby is followed all the time, and the mended
// conninfo is enough to heal.
func TestC40WrongEndpointsAndMissingPrivileges(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Lasts: 10 * time.Minute})
	x, err := s.Lab.AddPrimary(s.Ctx, "x")
	s.OK(err)
	s.OK(lab.SetupRole(s.Ctx, x))
	for role, grants := range map[string]string{
		"no_monitor":     "ALTER ROLE no_monitor REPLICATION",
		"no_replication": "GRANT pg_monitor TO no_replication",
		"no_line":        "ALTER ROLE no_line REPLICATION; GRANT pg_monitor TO no_line",
	} {
		s.Exec(s.A, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN; %s; GRANT USAGE ON SCHEMA slotkeeper TO %[1]s;
			GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO %[1]s`, role, grants))
	}
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.LockOut(s.B, "no_line")
	nobody, err := lab.FreePort()
	s.OK(err)

	to := func(port int, words string) string { return fmt.Sprintf("host=127.0.0.1 port=%d %s", port, words) }
	b := fmt.Sprintf("127.0.0.1:%d", s.B.Port())
	for _, c := range []struct {
		name, conninfo string
		state          plan.State
		reason         plan.Reason
		says           []string
	}{
		{"another cluster's server", to(x.Port(), ""), plan.Unsafe, plan.ReasonWrongEndpoint, []string{"system"}},
		{"the other standby", to(s.C.Port(), ""), plan.Unsafe, plan.ReasonWrongEndpoint, []string{"same server", `"c"`}},
		{"the primary", to(s.A.Port(), ""), plan.Unsafe, plan.ReasonWrongEndpoint, []string{"same server", `"a"`}},
		{"a role without pg_monitor", to(s.B.Port(), "user=no_monitor"), plan.Unknown, plan.ReasonNoPrivilege, []string{"no_monitor", b, "pg_monitor"}},
		{"a role without REPLICATION", to(s.B.Port(), "user=no_replication"), plan.Unknown, plan.ReasonNoPrivilege, []string{"no_replication", b, "REPLICATION"}},
		{"no line in pg_hba.conf", to(s.B.Port(), "user=no_line"), plan.Unknown, plan.ReasonNoPrivilege, []string{"no_line", b, "pg_hba.conf"}},
		{"nobody", to(nobody, ""), plan.Unknown, plan.ReasonUnreachable, []string{fmt.Sprintf("127.0.0.1:%d", nobody), lab.RoleName}},
	} {
		s.Readdress(s.B, c.conninfo)
		p := s.Verdict("cdc", s.B, c.state, c.reason)
		for _, text := range c.says {
			if !strings.Contains(p.Message+" "+p.Hint, text) {
				t.Errorf("%s: no %q in %q, %q", c.name, text, p.Message, p.Hint)
			}
		}
		if c.reason == plan.ReasonWrongEndpoint && strings.Contains(c.name, "standby") {
			s.Verdict("cdc", s.C, plan.Unsafe, plan.ReasonWrongEndpoint) // which of the two it is nobody knows
		} else {
			s.Safe([]string{"cdc"}, s.C)
		}
		if r := s.Slotkeeper("status"); r.Code != 3 && r.Code != 4 {
			t.Errorf("%s: status ends with %d", c.name, r.Code)
		}
		s.Readdress(s.B, "")
		s.Safe([]string{"cdc"})
	}

	if rows := s.Rows(x, "SELECT slot_name::text FROM pg_replication_slots"); len(rows) != 0 {
		t.Errorf("another cluster's server was given slots: %q", rows)
	}
	if _, err := os.Stat(filepath.Join(x.DataDir(), "pg_replslot", "slotkeeper.fence")); err == nil {
		t.Error("another cluster's server was given a fence")
	}
}
