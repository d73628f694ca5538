package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C08: a consumer acknowledges what the standby that is promoted then has not
// received. It is said of the standby before, and of the slot after the
// promotion, with the stretch that the consumer has and nobody else. A standby
// that received exactly to the acknowledged position misses nothing.
func TestC08ConsumerAheadOfTheNodePromoted(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]bool{"received to the commit's start": true, "received to its end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
			s.Still(s.A)
			// The first who reads a page writes hints into it, and with that WAL.
			s.Exec(s.A, "INSERT INTO t VALUES (0)")
			s.Get(s.A, "cdc")
			s.Mirrored("cdc", s.B)
			link := s.Stream(s.B)
			if ahead {
				s.OK(s.B.WaitReceived(s.Ctx, s.A))
				link.Stall()
			}
			s.Exec(s.A, "INSERT INTO t VALUES (1)")
			s.Get(s.A, "cdc")
			acknowledged := s.Slot(s.A, "cdc").Confirmed
			if ahead {
				v := s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonConsumerAhead)
				if !strings.Contains(v.Message, acknowledged.String()+"]") {
					t.Errorf("it is said: %q, and the consumer acknowledged %s", v.Message, acknowledged)
				}
			} else {
				s.OK(s.B.WaitReceived(s.Ctx, s.A))
				s.Mirrored("cdc", s.B)
				link.Stall()
			}
			link.Cut()
			s.FailOver(s.B)
			s.Leads(s.B)
			fork, err := s.A.Fork(s.Ctx)
			s.OK(err)
			if ahead != (fork < acknowledged) || !ahead && fork != acknowledged {
				t.Fatalf("the scene is not set: timeline 2 began at %s, %s was acknowledged", fork, acknowledged)
			}
			if !ahead {
				s.Cycles(3)
				s.NoCondition(plan.CondConsumerAhead)
				return
			}
			said := s.Condition(plan.CondConsumerAhead)
			if said.Subject != "cdc" || said.Severity != plan.Critical || !strings.Contains(said.Message, "("+fork.String()+", "+acknowledged.String()+"]") {
				t.Errorf("of %s it is said: %q, want (%s, %s]", said.Subject, said.Message, fork, acknowledged)
			}
		})
	}
}

// A consumer was at work until the primary died, and does not come to the new one.
func TestSlotNobodyComesForAfterAPromotion(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Settings: harness.Still()})
	s.Logical(s.A, "idle")
	s.Exec(s.A, "INSERT INTO t VALUES (1)")
	s.Get(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.Safe([]string{"idle"})
	s.FailOver(s.B)
	s.Leads(s.B)
	if lost := s.Condition(plan.CondSlotInactive); lost.Subject != "cdc" {
		t.Errorf("it is said of %s: %q", lost.Subject, lost.Message)
	}
	s.Exec(s.A, "INSERT INTO t VALUES (2)")
	s.Get(s.A, "cdc")
	s.NoCondition(plan.CondSlotInactive)
}
