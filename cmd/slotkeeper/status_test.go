package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func TestStatusTable(t *testing.T) {
	s := shop()
	s.Slots[0].Standbys[0].LagBytes = cluster.Some[int64](20480)
	s.Slots[0].Standbys[0].ProofAge = cluster.Some(0.25)
	s.Slots[0].Standbys[0].Message = "cdc can go on from b"
	s.Slots[1].Standbys = []status.Standby{{Node: "b", Verdict: plan.Lost, Reason: plan.ReasonWALRemoved, Message: "gone", Hint: "drop it"}}
	s.Slots = append(s.Slots, status.Slot{Name: "alone"})
	s.Conditions = []status.Finding{{Code: "hold_age", Subject: "a", Severity: plan.Warning, Message: "old", Hint: "look"}}
	s.Members[2].Error = "no answer"
	want := `SLOT   DATABASE  STANDBY  VERDICT  REASON       LAG    PROOF  MESSAGE
cdc              b        SAFE                  20 kB  0.2s   cdc can go on from b
cdc              c        SAFE
two              b        LOST     wal_removed                gone
alone                                                         there is no standby
scope shop, primary a, timeline 0, leader node1, observed 1.5s ago
wal_removed: drop it
warning: hold_age (a): old Hint: look
member c: no answer
`
	var b bytes.Buffer
	if err := output.Write(&b, output.Table, statusResult(s, s.ObservedAt.Add(1500*time.Millisecond))); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
