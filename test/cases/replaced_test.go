package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A slot is dropped and made again under the same name. Its mirror is replaced on
// each standby, once, and that is said of each, where there was one to replace: a slot
// of the same name that somebody else has left there is not touched.
func TestMirrorReplaced(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	before := s.Incarnation(s.B, "cdc")
	s.FreezeAtRest()
	s.Exec(s.C, "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(s.C, "SELECT pg_create_physical_replication_slot('cdc')")
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Logical(s.A, "cdc")
	s.ThawDaemon()
	s.Verdict("cdc", s.C, plan.Unsafe, plan.ReasonNotOurs)
	s.Safe([]string{"cdc"}, s.B)
	found := s.Condition(plan.CondMirrorReplaced)
	if found.Subject != "cdc/b" || found.Severity != plan.Info || !strings.Contains(found.Message, "an earlier incarnation") || found.Hint != "nothing is to be done" {
		t.Errorf("%s of %s: %q, hint %q", found.Severity, found.Subject, found.Message, found.Hint)
	}
	now := s.Incarnation(s.B, "cdc")
	if now == before {
		t.Error("the mirror is the one that it was")
	}
	s.Cycles(3)
	if s.Incarnation(s.B, "cdc") != now {
		t.Error("it is replaced again")
	}
	doc, _ := s.Status()
	for _, again := range doc.Conditions {
		if again.Code == plan.CondMirrorReplaced && (again.Subject != found.Subject || !again.Since.Equal(found.Since)) {
			t.Errorf("it is said again, of %s since %s: %s", again.Subject, again.Since, again.Message)
		}
	}
	s.Exec(s.C, "SELECT pg_drop_replication_slot('cdc')")
	s.Safe([]string{"cdc"})
}
