package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C30: ten slots, of which five are broken, each in another way. The other five
// are SAFE as soon as if they were alone, and a one-shot sync lists exactly the
// five, each with its reason.
func TestC30OneBadSlotStopsNoOther(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.SmallWAL()})
	settings := map[string]string{"max_slot_wal_keep_size": "80MB", "dynamic_library_path": "$libdir:" + otherPlugin(s)}
	const allowed = "output_plugin_libraries" // later minor versions have it
	if s.Text(s.A, "SELECT count(*) FROM pg_settings WHERE name = '"+allowed+"'") == "1" {
		settings[allowed] = "pgoutput, test_decoding, only_here"
	}
	s.OK(s.A.Set(s.Ctx, settings))
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "lost")
	s.FillWAL(s.A, 6)
	s.Lost(s.A, "lost")
	s.Logical(s.A, "walgone")
	for range 2 {
		s.FillWAL(s.A, 1)
		s.OK(s.B.WaitCatchup(s.Ctx, s.A))
		s.Exec(s.B, "CHECKPOINT")
	}
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('plugin', 'only_here')")
	good := []string{"one", "two", "three", "four", "five"}
	s.Logical(s.A, good...)
	s.Logical(s.A, "foreign")
	s.Exec(s.B, "SELECT pg_create_physical_replication_slot('foreign')")
	s.InTheMaking(s.A, "making")

	s.Run()
	for _, name := range good {
		s.SafeWithin(2, name, s.B)
	}
	config := s.Daemon.Config()
	s.StopDaemon()
	r := harness.Command(t, s.Ctx, "sync", "-o", "json", "--config", config)
	var doc struct {
		NotSafe []struct{ Slot, Node, Verdict, Reason, Hint string } `json:"not_safe"`
	}
	s.OK(json.Unmarshal([]byte(r.Stdout), &doc))
	got := map[string]string{}
	for _, p := range doc.NotSafe {
		got[p.Slot] = p.Verdict + " " + p.Reason
		if p.Hint == "" {
			t.Errorf("%s has no hint", p.Slot)
		}
	}
	want := map[string]string{
		"lost":    "LOST wal_removed",
		"walgone": "PENDING wal_missing",
		"making":  "PENDING new",
		"plugin":  "UNSAFE plugin_missing",
		"foreign": "UNSAFE not_ours",
	}
	if r.Code != 3 || !maps.Equal(got, want) {
		t.Errorf("sync ends with %d and lists %v, want %v\n%s", r.Code, got, want, r.Stderr)
	}

	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	for _, name := range good {
		if rows := s.Get(s.B, name); len(rows) != 1 {
			t.Errorf("%s gives %q, want one row", name, rows)
		}
	}
	for name, plugin := range map[string]string{"walgone": "test_decoding", "making": "test_decoding", "plugin": "only_here", "foreign": "test_decoding"} {
		there := s.Text(s.B, fmt.Sprintf("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '%s' AND plugin = '%s'", name, plugin))
		if there != "0" {
			t.Errorf("%s is there after the promotion, and nothing had proven it (%s)", name, plan.ReasonSlotMissing)
		}
	}
}

// otherPlugin makes an output plugin (only_here, a copy of test_decoding) in a
// folder that only one server is told of, and gives the folder.
func otherPlugin(s *harness.Scene) string {
	s.T.Helper()
	library, err := os.ReadFile(filepath.Join(s.Text(s.A, "SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'"), "test_decoding.so"))
	s.OK(err)
	folder := filepath.Join(s.Lab.Dir(), "plugins")
	s.OK(os.Mkdir(folder, 0o755))
	s.OK(os.WriteFile(filepath.Join(folder, "only_here.so"), library, 0o755))
	return folder
}
