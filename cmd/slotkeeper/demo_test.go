package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func demoReport() lab.Report {
	return lab.Report{
		Seed: 42, Killed: "node1", Promoted: "node3", Mirrored: true, Acknowledged: 12, Unreplicated: 2,
		Accounts: []lab.Account{
			{Slot: lab.BusySlot, Committed: 10, Delivered: 10, Duplicated: 3, Messages: 5, Gone: 1},
			{Slot: lab.IdleSlot, Committed: 4, Delivered: 4},
		},
		SafeAfter: 900 * time.Millisecond, ReadyAfter: 1200 * time.Millisecond, ReadyCycles: 2,
		Promotion: 130 * time.Millisecond, FirstRow: 40 * time.Millisecond, SafeAgain: 700 * time.Millisecond,
	}
}

// rows gives the lines of a table with their cells divided by one blank.
func rows(t *testing.T, text string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestDemoAccountOfOneRound(t *testing.T) {
	var b bytes.Buffer
	if err := writeRound(&b, demoReport(), 1); err != nil {
		t.Fatal(err)
	}
	contains(t, rows(t, b.String()),
		"\nSLOT COMMITTED DELIVERED DUPLICATED LOST MESSAGES LOST MESSAGES\n",
		"\norders 10 10 3 0 5 0\n", "\naudit 4 4 0 0 0 0\n",
		"\ntime to SAFE 900ms after the controller's start\n", "\nnew slot SAFE 1200ms after its creation (2 cycles)\n",
		"\npromotion 130ms from the death of node1 to node3 taking writes\n", "\ntime to first row 40ms from there\n",
		"\nlost with the primary 2 of 12 acknowledged rows, which no standby had (asynchronous replication); 1 of them had been delivered\n",
		"\nseed 42\n", "\nlost 0\n")
}

func TestDemoAccountNamesWhatIsLost(t *testing.T) {
	report := demoReport()
	report.Accounts[1].Lost = []lab.RowID{{Writer: 1, Tx: 2, Part: 3}}
	report.Errors = []string{"the consumer went away"}
	for _, rounds := range []int{1, 5} {
		var b bytes.Buffer
		if err := writeRound(&b, report, rounds); err != nil {
			t.Fatal(err)
		}
		contains(t, b.String(), "seed 42: slot audit lost 1.2.3\n", "seed 42: the consumer went away\n")
	}
}

// A demo that could not be carried out has no account, and says why once.
func TestDemoWithoutAnEndHasNoAccount(t *testing.T) {
	var b bytes.Buffer
	if err := writeRound(&b, lab.Report{Seed: 42, Errors: []string{"seed 42: no server"}}, 1); err != nil {
		t.Fatal(err)
	}
	if want := "  seed 42: no server\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestDemoSummary(t *testing.T) {
	bad := demoReport()
	bad.Seed, bad.Mirrored, bad.ReadyAfter, bad.ReadyCycles, bad.FirstRow = 43, false, 3*time.Second, 3, 0
	bad.Accounts[0].Lost = make([]lab.RowID, 7)
	bad.Errors = []string{"one", "two"}
	if line := roundLine(demoReport()); !strings.HasPrefix(line, "ok ") {
		t.Errorf("a good round gives %q", line)
	}
	contains(t, roundLine(bad), "NOT OK", "seed=43", "mirrored=false", "committed=14", "lost=7", "errors=2", "ready=3000ms cycles=3")
	var b bytes.Buffer
	if err := writeSummary(&b, []lab.Report{demoReport(), bad, demoReport()}); err != nil {
		t.Fatal(err)
	}
	contains(t, rows(t, b.String()), "\nnew slot SAFE 1200ms 3000ms 3\n", "\ntime to first row 40ms 40ms 2\n",
		"\na new slot was SAFE within 3 cycles at worst\n", "\n3 rounds: 7 lost, 2 of 3 mirrored, 2 errors\n")
}

// Where no terminal is, the table comes only with another verdict.
func TestDemoScreenOfALog(t *testing.T) {
	var b bytes.Buffer
	s := newScreen(&b)
	document := status.Status{Cycle: 3, Slots: []status.Slot{{Name: "orders", Standbys: []status.Standby{{Node: "node2", Verdict: plan.Pending, Reason: "new"}}}}}
	s.status(status.Status{})
	s.progress("starting")
	s.status(document)
	document.Cycle = 4
	s.status(document)
	document.Slots[0].Standbys[0] = status.Standby{
		Node: "node2", Verdict: plan.Safe, LagBytes: cluster.Some[int64](17),
		Mirror: cluster.Some(cluster.Position{Restart: 1, Confirmed: 0x3000060, CatalogXmin: 700}),
	}
	s.status(document)
	s.clear()
	text := rows(t, b.String())
	if strings.Count(text, "SLOT STANDBY") != 2 || strings.Contains(text, "\x1b") {
		t.Errorf("want two tables and no control characters:\n%s", text)
	}
	contains(t, text, "s starting\n", "\norders node2 PENDING new - - 3\n", "\norders node2 SAFE 0/3000060 17 4\n")
}
