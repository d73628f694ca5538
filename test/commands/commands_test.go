package commands

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// stage is a scene whose daemon may be stopped: its configuration stays.
type stage struct {
	*harness.Scene
	config string
}

func begin(t *testing.T, standbys int) *stage {
	s := harness.New(t, harness.Options{Standbys: standbys})
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})
	return &stage{s, s.Daemon.Config()}
}

// want runs a command and checks its exit code, and that its output holds each
// of the texts.
func (s *stage) want(code int, command string, texts ...string) harness.Result {
	s.T.Helper()
	args := append(strings.Fields(command), "--config", s.config)
	r := harness.Command(s.T, s.Ctx, args...)
	if r.Code != code {
		s.T.Fatalf("slotkeeper %s: exit code %d, want %d\n%s%s", command, r.Code, code, r.Stdout, r.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stdout+r.Stderr, text) {
			s.T.Errorf("slotkeeper %s: no %q in\n%s%s", command, text, r.Stdout, r.Stderr)
		}
	}
	return r
}

func (s *stage) slots(n *lab.Node) []string {
	s.T.Helper()
	return s.Rows(n, "SELECT slot_name::text FROM pg_replication_slots WHERE NOT temporary ORDER BY 1")
}

func TestBesideTheDaemon(t *testing.T) {
	s := begin(t, 2)
	s.want(0, "wait --timeout 30s")
	s.want(0, "wait --timeout 30s --slot cdc --standby b")
	s.want(6, "wait --timeout 1500ms --slot nix", "slot nix: there is no such slot on the primary")
	s.want(0, "status", "cdc", "SAFE", "primary a, timeline 1")
	s.want(0, "verify", "cdc", "primary a, 1 slot")
	s.want(3, "verify --slot nix", "there is no such slot on a")
	s.want(0, "sync", "2 of 2 pairs")
	s.want(5, "uninstall", "leads: stop it")
	s.want(0, "plan", "primary a")
	if got := s.slots(s.B); !slices.Contains(got, "cdc") {
		t.Errorf("a refused uninstall removed the mirror: %v", got)
	}
	s.want(1, "run", "address already in use")
	r := harness.Command(t, s.Ctx, "run", "--config", s.config, "--http-listen", "")
	if r.Code != 5 || !strings.Contains(r.Stderr, "data_dir is in use") {
		t.Errorf("a second daemon: exit code %d: %s", r.Code, r.Stderr)
	}
	// A stopped daemon has given its leadership back: nobody waits for it.
	s.StopDaemon()
	s.want(0, "sync", "2 of 2 pairs")
}

func TestWithoutTheDaemon(t *testing.T) {
	s := begin(t, 2)
	s.StopDaemon()
	s.want(4, "status", "connection refused", "no embedded etcd is running")

	// plan says what it would do, and does nothing.
	s.Logical(s.A, "two")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	before := s.slots(s.B)
	r := s.want(0, "plan -o json")
	var plan struct {
		Primary string `json:"primary"`
		Steps   []struct {
			Node, Kind string
			Changes    []struct{ Name string }
		} `json:"steps"`
	}
	s.OK(json.Unmarshal([]byte(r.Stdout), &plan))
	made := map[string]bool{}
	for _, step := range plan.Steps {
		for _, c := range step.Changes {
			made[step.Node+" "+c.Name] = true
		}
	}
	if plan.Primary != "a" || !made["b two"] || !made["c two"] {
		t.Errorf("the plan does not make two on b and c:\n%s", r.Stdout)
	}
	if after := s.slots(s.B); !slices.Equal(before, after) {
		t.Errorf("plan changed b: %v, then %v", before, after)
	}

	// sync leads for a moment and does it.
	s.want(0, "sync", "4 of 4 pairs")
	if got := s.slots(s.C); !slices.Contains(got, "two") {
		t.Errorf("sync made no mirror on c: %v", got)
	}
}

func TestSyncListsExactlyWhatIsNotSafe(t *testing.T) {
	s := begin(t, 2)
	s.StopDaemon()
	s.Exec(s.B, "SELECT pg_create_physical_replication_slot('taken')")
	s.Logical(s.A, "taken")
	r := s.want(3, "sync -o json", "3 of 4 pairs")
	var doc struct {
		NotSafe []struct{ Slot, Node, Verdict, Reason string } `json:"not_safe"`
	}
	s.OK(json.Unmarshal([]byte(r.Stdout), &doc))
	if len(doc.NotSafe) != 1 || doc.NotSafe[0].Slot != "taken" || doc.NotSafe[0].Node != "b" || doc.NotSafe[0].Reason != "not_ours" {
		t.Errorf("got %+v", doc.NotSafe)
	}
	s.want(3, "sync", "taken", "not_ours")
}

func TestUninstallLeavesNothing(t *testing.T) {
	s := begin(t, 2)
	s.StopDaemon()
	s.Exec(s.B, "SELECT pg_create_physical_replication_slot('foreign')")
	s.want(0, "uninstall", "mirror cdc", "hold slotkeeper_hold", "original cdc", "fence", "ledger")
	for node, want := range map[*lab.Node][]string{
		s.A: {s.B.SlotName(), s.C.SlotName(), "cdc"},
		s.B: {"foreign"},
		s.C: {},
	} {
		slices.Sort(want)
		if got := s.slots(node); !slices.Equal(got, want) {
			t.Errorf("%s has the slots %v, want %v", node.Name(), got, want)
		}
		left, err := filepath.Glob(filepath.Join(node.DataDir(), "pg_replslot", "*slotkeeper*"))
		s.OK(err)
		markers, err := filepath.Glob(filepath.Join(node.DataDir(), "pg_replslot", "*", "slotkeeper*"))
		s.OK(err)
		if left = append(left, markers...); len(left) > 0 {
			t.Errorf("%s still has %v", node.Name(), left)
		}
	}
	// Once more there is nothing to do, and afterwards all can begin anew.
	s.want(0, "uninstall")
	s.want(0, "sync", "2 of 2 pairs")
}

// A slot of a primary that no controller has looked at since it was a mirror is its
// consumer's, and stays.
func TestUninstallLeavesTheSlotsOfANewPrimary(t *testing.T) {
	s := begin(t, 2)
	s.StopDaemon()
	s.OK(s.A.Kill(s.Ctx))
	s.OK(s.B.Promote(s.Ctx))
	s.want(4, "uninstall -o tsv", "b\toriginal cdc\tyes\tmarker removed, slot kept", "c\tmirror cdc\tyes\t")
	if got := s.slots(s.B); !slices.Contains(got, "cdc") {
		t.Errorf("b has %v", got)
	}
	if got := s.slots(s.C); slices.Contains(got, "cdc") {
		t.Errorf("c has %v", got)
	}
}

// A node that does not answer is named, and the ledger stays for another try.
func TestUninstallNamesWhatItCouldNotReach(t *testing.T) {
	s := begin(t, 2)
	s.StopDaemon()
	s.OK(s.C.StopFast(s.Ctx))
	s.want(4, "uninstall -o tsv", "c\teverything of slotkeeper's\tno\t", "etcd\tledger\tno\t")
	if got := s.slots(s.B); len(got) > 0 {
		t.Errorf("b still has %v", got)
	}
	s.OK(s.C.Start(s.Ctx))
	s.want(0, "uninstall -o tsv", "c\tmirror cdc\tyes\t", "etcd\tledger\tyes\t")
}

// verify finds the new primary by asking, and needs neither daemon nor etcd.
func TestVerifyAfterAFailover(t *testing.T) {
	s := begin(t, 1)
	s.StopDaemon()
	s.OK(s.A.Kill(s.Ctx))
	s.want(4, "verify", "there is no primary among the members", "b: a standby")
	s.OK(s.B.Promote(s.Ctx))
	s.want(0, "verify", "primary b, 1 slot", "member a did not answer")
}

func TestVerifyNamesALostSlot(t *testing.T) {
	s := begin(t, 1)
	s.StopDaemon()
	s.OK(s.A.Set(s.Ctx, map[string]string{"max_slot_wal_keep_size": "1MB", "max_wal_size": "32MB", "min_wal_size": "32MB"}))
	s.Wait("cdc to be invalidated", func() (bool, string) {
		s.Exec(s.A, "SELECT pg_switch_wal(); CREATE TABLE IF NOT EXISTS filler (); DROP TABLE filler")
		s.Exec(s.A, "CHECKPOINT")
		state := s.Text(s.A, "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'cdc'")
		return state == "lost", state
	})
	s.want(3, "verify", "cdc", "no", "it is invalidated (wal_removed)")
}
