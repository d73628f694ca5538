package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C11: a slot is dropped and one of the same name is made between two polls:
// the same in all but its history, one of another database, one of another
// plugin. The mirror is replaced as a whole, and never holds anything of both.
func TestC11SameNameNewSlot(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Exec(s.A, "CREATE DATABASE other")
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.OK(s.A.DB("other").Exec(s.Ctx, "CREATE TABLE t (id int)"))
	names := []string{"same", "moved", "plugin"}
	s.Logical(s.A, "same", "moved")
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('plugin', 'pgoutput')")
	s.Run()
	s.Safe(names)
	old := map[string]string{}
	for _, name := range names {
		old[name] = s.Text(s.B, whole(name))
	}

	s.FreezeDaemon()
	s.Exec(s.A, "INSERT INTO t VALUES (0)") // before the new slots: not theirs
	for _, name := range names {
		s.Exec(s.A, fmt.Sprintf("SELECT pg_drop_replication_slot('%s')", name))
	}
	s.Logical(s.A, "same", "plugin")
	s.OK(s.A.DB("other").Exec(s.Ctx, "SELECT pg_create_logical_replication_slot('moved', 'test_decoding')"))
	fresh := map[string]string{}
	for _, name := range names {
		if fresh[name] = s.Text(s.A, whole(name)); fresh[name] == old[name] {
			t.Fatalf("the scene is not set: %s is what it was: %s", name, fresh[name])
		}
	}
	s.ThawDaemon()
	for _, name := range names {
		s.Wait("the mirror of "+name+" to be the new slot's", func() (bool, string) {
			at := s.Text(s.B, whole(name))
			if at != old[name] && at != fresh[name] && at != "" {
				t.Fatalf("the mirror of %s is %s, neither what it was (%s) nor what it must be (%s)", name, at, old[name], fresh[name])
			}
			return at == fresh[name], "it is " + at
		})
	}
	doc := s.Safe(names)
	for _, name := range names {
		recreated(t, doc.Conditions, name, at(old[name]), at(fresh[name]))
	}

	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.A.DB("other").Exec(s.Ctx, "INSERT INTO t VALUES (2)"))
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	s.FailOver(s.B)
	for _, name := range []string{"same", "plugin"} {
		s.Same(s.Get(s.B, name), []string{"table public.t: INSERT: id[integer]:1"})
	}
	rows, err := s.B.DB("other").Strings(s.Ctx, "SELECT data FROM pg_logical_slot_get_changes('moved', NULL, NULL) WHERE data LIKE 'table%'")
	s.OK(err)
	s.Same(rows, []string{"table public.t: INSERT: id[integer]:2"})
}

// whole asks for all of a slot that a mirror must have of one and the same slot.
func whole(slot string) string {
	return fmt.Sprintf(`SELECT max(concat_ws(' ', confirmed_flush_lsn, restart_lsn, catalog_xmin, database, plugin))
		FROM pg_replication_slots WHERE slot_name = '%s'`, slot)
}

// at is where a slot is, as slotkeeper writes it: from 19 on the server pads positions.
func at(slot string) string {
	position, err := cluster.ParseLSN(strings.Fields(slot)[0])
	if err != nil {
		panic(err)
	}
	return position.String()
}

// recreated wants slot_recreated to name where the old slot was and where the new one is.
func recreated(t *testing.T, conditions []status.Finding, slot, before, after string) {
	t.Helper()
	for _, c := range conditions {
		if c.Code == plan.CondSlotRecreated && c.Subject == slot {
			if !strings.Contains(c.Message, before) || !strings.Contains(c.Message, after) {
				t.Errorf("%q names not both %s and %s", c.Message, before, after)
			}
			return
		}
	}
	t.Errorf("no slot_recreated of %s in %v", slot, conditions)
}
