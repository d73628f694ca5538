package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// twoPhaseSlots are the ways to a slot that decodes prepared transactions: born
// without it and turned on by its subscriber, who asks for it when the first copy
// of the tables is done; altered; or made so.
var twoPhaseSlots = map[string]struct {
	major  int
	born   bool
	before int // how often the primary itself sends what was prepared before, afterwards
	enable func(s *harness.Scene)
}{
	"turned on by the subscriber": {15, false, 1, func(s *harness.Scene) { prepared(s, s.A, "get", true) }},
	// The server leaves two_phase_at empty here, so what was prepared before counts as sent.
	"altered": {18, false, 0, func(s *harness.Scene) {
		s.Replication(s.A, "ALTER_REPLICATION_SLOT cdc (TWO_PHASE true)")
	}},
	"made so": {15, true, 0, func(*harness.Scene) {}},
}

// C12: transactions prepared before two-phase decoding was turned on for their
// slot and after, confirmed as prepared and not. The promoted node sends of each
// what the primary would have sent: whole, its end, or its preparation, once.
func TestC12PreparedTransactions(t *testing.T) {
	t.Parallel()
	for name, way := range twoPhaseSlots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.New(t, harness.Options{Major: max(harness.Major(t), way.major), Settings: harness.Still()})
			s.Exec(s.A, "CREATE TABLE t (who text); CREATE PUBLICATION p FOR TABLE t")
			s.Exec(s.A, fmt.Sprintf("SELECT pg_create_logical_replication_slot('cdc', 'pgoutput', false, %t)", way.born))
			s.Run()
			s.Safe([]string{"cdc"})
			prepare(s, "before")
			if sent := prepared(s, s.A, "get", way.born); len(sent) > 0 != way.born {
				t.Fatalf("the scene is not set: %q was sent before it was turned on", sent)
			}
			way.enable(s)
			prepare(s, "confirmed")
			if sent := strings.Join(prepared(s, s.A, "get", true), " "); !strings.Contains(sent, "confirmed") || strings.Contains(sent, "before") {
				t.Fatalf("the scene is not set: %q was sent when it was turned on", sent)
			}
			mirror := s.Mirrored("cdc", s.B)
			const twoPhase = "SELECT format('%s at %s', two_phase, two_phase_at) FROM slotkeeper.slots() WHERE name = 'cdc'"
			if at, want := s.Text(s.B, twoPhase), s.Text(s.A, twoPhase); at != want || !strings.HasPrefix(at, "t at ") {
				t.Errorf("the mirror decodes prepared transactions %s, the slot %s", at, want)
			}
			s.NoCondition(plan.CondSlotRecreated) // it is the one that it was, and its consumer goes on
			s.StopDaemon()

			prepare(s, "open")
			s.Exec(s.A, "COMMIT PREPARED 'before'")
			s.Exec(s.A, "COMMIT PREPARED 'confirmed'")
			want := prepared(s, s.A, "peek", true)
			if at := s.Slot(s.A, "cdc"); at.Confirmed != mirror.Confirmed {
				t.Fatalf("the scene is not set: the slot is at %s, the mirror at %s", at.Confirmed, mirror.Confirmed)
			}
			s.OK(s.B.WaitCatchup(s.Ctx, s.A))
			s.FailOver(s.B)
			got := prepared(s, s.B, "get", true)
			s.Same(got, want)
			s.Exec(s.B, "COMMIT PREPARED 'open'")
			got = append(got, prepared(s, s.B, "get", true)...)
			for row, times := range map[string]int{"before": way.before, "confirmed": 0, "open": 1} {
				if came := count(got, "I", row); came != times {
					t.Errorf("the row %q came %d times, want %d, in %q", row, came, times, got)
				}
			}
			if ends := count(got, "K", ""); ends != 3 {
				t.Errorf("%d ends of three prepared transactions came in %q", ends, got)
			}
		})
	}
}

// count counts the messages of a kind that hold a text.
func count(messages []string, kind, text string) int {
	n := 0
	for _, m := range messages {
		if strings.HasPrefix(m, kind) && strings.Contains(m, text) {
			n++
		}
	}
	return n
}

// prepare prepares a transaction that writes a row of its own name.
func prepare(s *harness.Scene, name string) {
	s.T.Helper()
	s.Exec(s.A, fmt.Sprintf("BEGIN; INSERT INTO t VALUES ('%[1]s'); PREPARE TRANSACTION '%[1]s'", name))
}

// prepared gives what the slot cdc sends to a subscriber, who takes prepared
// transactions or not: get consumes, peek does not. Each message begins with its
// kind: b and P around one that is prepared, B and C around one that is whole, K
// for the end of one that was prepared, I for a row.
func prepared(s *harness.Scene, n *lab.Node, how string, twoPhase bool) []string {
	s.T.Helper()
	return s.Rows(n, fmt.Sprintf(`SELECT chr(get_byte(data, 0)) || ' ' || encode(data, 'escape') FROM pg_logical_slot_%s_binary_changes(
		'cdc', NULL, NULL, 'proto_version', '3', 'publication_names', 'p', 'two_phase', '%t')`, how, twoPhase))
}
