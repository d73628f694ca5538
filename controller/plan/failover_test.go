package plan

import (
	"strings"
	"testing"
	"time"
)

func pending(w *world) string {
	for _, c := range w.conditions {
		if c.Code == CondFailoverFlagPending {
			return c.Message
		}
	}
	return ""
}

func TestFailoverIsSetAgainAfterPromotion(t *testing.T) {
	w := coexisting(t, "c") // b has no worker: its mirror is ours
	w.promote("b")
	w.turn()
	if !w.servers["b"].slots["native"].Failover || w.servers["b"].slots["app"].Failover {
		t.Fatalf("native has it: %t, app has it: %t", w.servers["b"].slots["native"].Failover, w.servers["b"].slots["app"].Failover)
	}
	if said := pending(w); said != "" {
		t.Error(said)
	}
	w.work(t, "c")
	w.turn()
	if kinds(w.plan)["failover/b"] || w.memory.Slots["native"].FailoverDue {
		t.Error("it is set again and again")
	}
	w.mustBe(t, "native", "c", Safe, "")
}

func TestFailoverWaitsForTheConsumer(t *testing.T) {
	w := coexisting(t, "c")
	w.promote("b")
	native := w.servers["b"].slots["native"]
	native.ActivePID = 4711
	w.turn()
	if kinds(w.plan)["failover/b"] {
		t.Error("it is tried while somebody has the slot")
	}
	if said := pending(w); !strings.Contains(said, "4711") {
		t.Errorf("it says %q", said)
	}
	w.syncSlots("c") // the worker drops its copy: the flag is off
	w.replayAll()
	w.turn()
	w.mustBe(t, "native", "c", Safe, "") // ours meanwhile
	native.ActivePID = 0
	w.turn()
	if !native.Failover || pending(w) != "" {
		t.Fatalf("set: %t, %q", native.Failover, pending(w))
	}
	w.turn()
	w.work(t, "c")
	w.turn()
	w.mustBe(t, "native", "c", Safe, "")
	if !w.servers["c"].slots["native"].Synced {
		t.Error("it is not the server's again")
	}
}

func TestFailoverRefusedIsTriedAgainLater(t *testing.T) {
	w := coexisting(t)
	w.promote("b")
	native, tries := w.servers["b"].slots["native"], 0
	w.behind = func(s Step) {
		if s.Kind == StepFailover {
			native.ActivePID = 4711 // between the read and the call
			tries++
		}
	}
	w.turn()
	native.ActivePID = 0
	if said := pending(w); !strings.Contains(said, "in time") {
		t.Errorf("it says %q", said)
	}
	w.turns(3)
	if tries != 1 || pending(w) == "" {
		t.Errorf("%d tries within an interval, pending %q", tries, pending(w))
	}
	w.behind = nil
	w.now = w.now.Add(time.Second)
	w.turn()
	if !native.Failover || pending(w) != "" {
		t.Errorf("set: %t, pending %q", native.Failover, pending(w))
	}
}

// The ledger carries the flag to a controller that has never seen the old
// primary; without a ledger nobody knows of it.
func TestFailoverIsRememberedByTheLedgerOnly(t *testing.T) {
	for _, ledger := range []bool{true, false} {
		w := coexisting(t)
		note := w.memory.Slots["native"]
		if !ledger {
			note.Failover = false
		}
		w.memory.Slots["native"] = note
		w.memory.Pairs, w.memory.Epoch = nil, w.memory.Epoch+1
		w.promote("b")
		w.turn()
		if got := w.servers["b"].slots["native"].Failover; got != ledger {
			t.Errorf("ledger %t: the flag is %t", ledger, got)
		}
	}
}

func TestFailoverTurnedOffByItsOwnerStaysOff(t *testing.T) {
	w := coexisting(t)
	w.primary().slots["native"].Failover = false
	w.turn()
	w.promote("b")
	w.turns(2)
	if w.servers["b"].slots["native"].Failover || pending(w) != "" {
		t.Error("the flag came back")
	}
}
