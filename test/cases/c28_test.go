package cases

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// everythingOf is all that a slot is, as text: whatever touches it shows.
const everythingOf = `SELECT format('%s %s %s %s %s %s %s %s %s', name, kind, temporary, restart_lsn, confirmed_flush_lsn,
	catalog_xmin, active_pid, incarnation, (marker).kind) FROM slotkeeper.slots() WHERE name = ANY ('{`

// C28: slots of others, on the standby above all: a physical one, logical ones
// that somebody left there, one of them of a name that is mirrored, temporary
// ones, a base backup under way; on the primary one with a live consumer that
// nobody chose. (A standby of version 15 has no live logical consumers.) None is
// touched, mirrored or alerted on.
func TestC28SlotsOfOthers(t *testing.T) {
	t.Parallel()
	harness.Binary(t) // built before the backup begins
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Logical(s.A, "their_left", "same_name")
	s.OK(s.A.StopFast(s.Ctx))
	s.OK(s.B.Promote(s.Ctx))
	s.OK(s.A.Follow(s.Ctx, s.B))
	s.OK(s.A.Start(s.Ctx))
	standby, primary := s.A, s.B
	s.Exec(standby, "SELECT pg_create_physical_replication_slot('their_physical', true)")
	temporary := s.Session(standby)
	temporary.Exec("SELECT pg_create_physical_replication_slot('their_temporary', true, true)")
	s.Logical(primary, "mine", "gone", "same_name", "their_live")
	consumer := program(s, primary, "pg_recvlogical", "--dbname=postgres", "--slot=their_live", "--start", "--file=/dev/null")
	s.Wait("the consumer to stream", func() (bool, string) { return activePID(s, primary, "their_live") != "", "it does not" })
	backup := program(s, standby, "pg_basebackup", "--pgdata="+filepath.Join(t.TempDir(), "copy"), "--wal-method=stream", "--max-rate=3M", "--checkpoint=fast")
	s.Wait("the base backup to have its slot", func() (bool, string) { return len(backupSlots(s, standby)) == 1, "it has none" })
	s.OK(backup.Process.Signal(syscall.SIGSTOP)) // else it might end before there is anything to see
	theirs := []string{"same_name", "their_left", "their_physical", "their_temporary"}
	before := everything(s, standby, theirs)
	backups := backupSlots(s, standby)
	live := activePID(s, primary, "their_live")

	s.Run("slots: {exclude: [{name: their_live}]}")
	s.Safe([]string{"mine", "gone"}, standby)
	s.Verdict("same_name", standby, plan.Unsafe, plan.ReasonNotOurs)
	s.Exec(primary, "SELECT pg_drop_replication_slot('gone')")
	s.Wait("the mirror of a slot that is gone to go", func() (bool, string) { return !s.Has(standby, "gone"), "it is there" })
	s.Cycles(3)
	if !slices.Equal(backupSlots(s, standby), backups) {
		t.Error("the base backup's slot is gone, or it has ended too early to show anything")
	}
	s.OK(backup.Process.Signal(syscall.SIGCONT))
	s.OK(backup.Wait())
	s.Same(everything(s, standby, theirs), before)
	unspoken(s, append(backups, "their_left", "their_physical", "their_temporary", "their_live", standby.SlotName()))

	s.OK(s.Daemon.Stop(s.Ctx))
	if result := s.Slotkeeper("uninstall"); result.Code != 0 {
		t.Errorf("uninstall ends with %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
	s.Same(everything(s, standby, theirs), before)
	if s.Has(standby, "mine") {
		t.Error("uninstall has left a mirror")
	}
	if pid := activePID(s, primary, "their_live"); pid == "" || pid != live {
		t.Errorf("the consumer on the primary was process %s and is %q", live, pid)
	}
	if marked := s.Generation(primary, "their_live"); marked != 0 {
		t.Error("a slot that nobody chose is marked")
	}
	s.OK(consumer.Process.Kill())
}

// program starts one of PostgreSQL's client programs; it ends with the test.
func program(s *harness.Scene, n *lab.Node, name string, args ...string) *exec.Cmd {
	s.T.Helper()
	args = append([]string{"--host=127.0.0.1", "--port=" + strconv.Itoa(n.Port()), "--username=postgres", "--no-password"}, args...)
	cmd := exec.CommandContext(s.Ctx, filepath.Join(s.Lab.BinDir(), name), args...)
	s.OK(cmd.Start())
	return cmd
}

func activePID(s *harness.Scene, n *lab.Node, slot string) string {
	s.T.Helper()
	return s.Text(n, fmt.Sprintf("SELECT active_pid FROM pg_replication_slots WHERE slot_name = '%s'", slot))
}

func backupSlots(s *harness.Scene, n *lab.Node) []string {
	s.T.Helper()
	return s.Rows(n, `SELECT slot_name::text FROM pg_replication_slots WHERE slot_name LIKE 'pg\_basebackup%' AND active`)
}

func everything(s *harness.Scene, n *lab.Node, names []string) []string {
	s.T.Helper()
	return s.Rows(n, everythingOf+strings.Join(names, ",")+"}') ORDER BY name")
}

// unspoken wants the status to say nothing of these slots.
func unspoken(s *harness.Scene, names []string) {
	s.T.Helper()
	doc, ok := s.Status()
	if !ok {
		s.T.Fatal("the controller does not answer")
	}
	text, err := json.Marshal(doc)
	s.OK(err)
	for _, name := range names {
		if strings.Contains(string(text), `"`+name+`"`) || strings.Contains(string(text), " "+name+" ") {
			s.T.Errorf("%s is spoken of: %s", name, text)
		}
	}
}
