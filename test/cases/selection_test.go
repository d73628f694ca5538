package cases

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Slots are selected by a glob on their names, by database and by plugin, taken
// in and left out, and a reload changes it. What is not selected is not there on
// a standby, and not spoken of.
func TestSlotsAreSelected(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Exec(s.A, "CREATE DATABASE other")
	s.Logical(s.A, "app_one", "app_skip", "tool")
	s.Exec(s.A, "SELECT pg_create_logical_replication_slot('app_out', 'pgoutput')")
	for _, name := range []string{"app_other", "else"} {
		s.OK(s.A.DB("other").Exec(s.Ctx, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", name))
	}
	const first = `slots:
  include: [{name: "app_*", database: postgres}, {database: "oth*", plugin: test_decoding, name: "e?se"}]
  exclude: [{name: "*_skip"}]`
	s.Run(first)
	selected := []string{"app_one", "app_out", "else"}
	s.Safe(selected)
	s.Cycles(2)
	only(s, selected, selected)

	// One more, and one less: its mirror stays, for it may be a slip, and is told of.
	before := s.Incarnation(s.B, "app_out")
	s.Reload(first, `slots:
  include: [{name: "*", plugin: test_decoding}]
  exclude: [{name: "*_skip"}, {database: other, name: "app_*"}]`)
	selected = []string{"app_one", "else", "tool"}
	s.Safe(selected)
	left := s.Condition(plan.CondMirrorUnselected)
	if left.Subject != s.B.Name() || !strings.Contains(left.Message, "app_out") || strings.Contains(left.Message, "else") {
		t.Errorf("of %s it is said: %q", left.Subject, left.Message)
	}
	s.Cycles(2)
	only(s, selected, []string{"app_one", "app_out", "else", "tool"})
	if s.Incarnation(s.B, "app_out") != before {
		t.Error("the mirror that is not selected any more was touched")
	}
}

// A mirror that is not selected any more stays while it is protected. Once the hold
// was gone and the slot has moved on it goes: a consumer would find it after a
// promotion and decode with rows that are gone.
func TestUnselectedMirrorIsNotLeftUnprotected(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc", "other")
	const all, less = `slots: {include: [{name: "*"}]}`, `slots: {include: [{name: "other"}]}`
	s.Run(all)
	s.Safe([]string{"cdc", "other"})
	s.Reload(all, less)
	s.Condition(plan.CondMirrorUnselected)
	s.FreezeDaemon()
	s.Exec(s.A, dropHold)
	s.Exec(s.B, dropHold)
	s.Reshape(s.A)
	s.Pass(s.A, "cdc")
	s.Pass(s.A, "other")
	s.ThawDaemon()
	s.Safe([]string{"other"})
	s.Wait("the mirror that nothing holds to be gone", func() (bool, string) { return !s.Has(s.B, "cdc"), "it is there" })
	s.Logged("was not held throughout, and is dropped")
	s.FailOver(s.B)
	s.Wait("the promotion to be seen", func() (bool, string) {
		doc, ok := s.Status()
		return ok && doc.Primary != nil && doc.Primary.Node == s.B.Name(), "it is not"
	})
	if s.Has(s.B, "cdc") || !s.Has(s.B, "other") {
		t.Errorf("the new primary has %q", s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots"))
	}
}

// The slot is dropped and made again meanwhile, as a copy of one that is behind: the
// mirror of the earlier one goes, for it is past what a consumer of this one needs.
func TestUnselectedMirrorOfAnEarlierSlotGoes(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc", "behind")
	const all, less = `slots: {include: [{name: "*"}]}`, `slots: {include: [{name: "behind"}]}`
	s.Run(all)
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.Reload(all, less)
	s.Condition(plan.CondMirrorUnselected)
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(s.A, "SELECT pg_copy_logical_replication_slot('behind', 'cdc')")
	want := s.Peek(s.A, "cdc")
	s.Wait("the mirror of the earlier slot to be gone", func() (bool, string) { return !s.Has(s.B, "cdc"), "it is there" })
	s.Logged("is of an earlier slot")
	s.Reload(less, all)
	s.Safe([]string{"cdc", "behind"})
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// only wants the status to show these slots and no others, and the standby to
// have those mirrors.
func only(s *harness.Scene, shown, there []string) {
	s.T.Helper()
	doc, _ := s.Status()
	var names []string
	for _, slot := range doc.Slots {
		names = append(names, slot.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, shown) {
		s.T.Errorf("the status shows %q, want %q", names, shown)
	}
	mirrors := s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical' ORDER BY 1")
	if !slices.Equal(mirrors, there) {
		s.T.Errorf("the standby has %q, want %q", mirrors, there)
	}
}
