package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A failover slot on a standby without the server's worker is mirrored like any
// other, without the flag. After the promotion the flag is set again, as soon as
// the consumer lets go of the slot; until then that is said.
func TestFailoverFlagAfterPromotion(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Major: harness.ServerSync(t), Settings: harness.Rewindable()})
	failoverSlot(s, s.A, "native")
	failoverSlot(s, s.A, "busy")
	s.Logical(s.A, "plain")
	s.Run()
	s.Safe([]string{"native", "busy", "plain"})
	if flags := flags(s, s.B); flags != "busy f, native f, plain f" {
		t.Errorf("the mirrors have the flag: %s", flags)
	}
	s.Cycles(2) // the ledger has it, who may have to lead anew remembers the flag
	s.FreezeDaemon()
	s.FailOver(s.B)
	consumer := program(s, s.B, "pg_recvlogical", "--dbname=postgres", "--slot=busy", "--start", "--file=/dev/null")
	s.Wait("the consumer to stream", func() (bool, string) { return activePID(s, s.B, "busy") != "", "it does not" })
	s.ThawDaemon()
	pending := s.Condition(plan.CondFailoverFlagPending)
	if pending.Subject != "busy" || !strings.Contains(pending.Message, activePID(s, s.B, "busy")) {
		t.Errorf("pending is %s: %s", pending.Subject, pending.Message)
	}
	s.Cycles(2)
	if flags := flags(s, s.B); flags != "busy f, native t, plain f" {
		t.Errorf("while the consumer of busy streams: %s", flags)
	}
	s.OK(consumer.Process.Kill())
	s.Wait("busy to have the flag", func() (bool, string) {
		got := flags(s, s.B)
		return got == "busy t, native t, plain f", got
	})
	s.NoCondition(plan.CondFailoverFlagPending)

	// The originals that the old primary has left become mirrors, without the flag.
	s.OK(s.A.Rewind(s.Ctx, s.B))
	if flags := flags(s, s.B); flags != "busy t, native t, plain f" {
		t.Fatalf("the scene is not set: %s", flags)
	}
	s.OK(s.A.Start(s.Ctx))
	s.Safe([]string{"native", "busy", "plain"}, s.A)
	s.Wait("the mirrors to be without the flag", func() (bool, string) {
		got := flags(s, s.A)
		return got == "busy f, native f, plain f", got
	})
}

func flags(s *harness.Scene, n *lab.Node) string {
	s.T.Helper()
	return strings.Join(s.Rows(n, "SELECT format('%s %s', slot_name, failover) FROM pg_replication_slots WHERE slot_type = 'logical' ORDER BY 1"), ", ")
}
