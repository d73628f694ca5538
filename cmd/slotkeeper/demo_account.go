package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
)

// writeRound writes the account of one failover: all of it when it is the only
// one, a line when it is one of many.
func writeRound(w io.Writer, report lab.Report, rounds int) error {
	if rounds > 1 {
		_, err := fmt.Fprintln(w, roundLine(report))
		if err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		return writeTroubles(w, report)
	}
	if len(report.Accounts) == 0 {
		return writeTroubles(w, report) // it did not get that far, and noughts would look like a result
	}
	result := output.Result{Header: []string{"slot", "committed", "delivered", "duplicated", "lost", "messages", "lost messages"}}
	gone := 0
	for _, a := range report.Accounts {
		result.Rows = append(result.Rows, []string{
			a.Slot, fmt.Sprint(a.Committed), fmt.Sprint(a.Delivered), fmt.Sprint(a.Duplicated),
			fmt.Sprint(len(a.Lost)), fmt.Sprint(a.Messages), fmt.Sprint(len(a.LostNotes)),
		})
		gone += a.Gone
	}
	result.Notes = []string{
		"",
		fmt.Sprintf("time to SAFE           %s after the controller's start", milliseconds(report.SafeAfter)),
		fmt.Sprintf("new slot SAFE          %s after its creation (%s)", milliseconds(report.ReadyAfter), cycles(report.ReadyCycles)),
		fmt.Sprintf("promotion              %s from the death of %s to %s taking writes", milliseconds(report.Promotion), report.Killed, report.Promoted),
		fmt.Sprintf("time to first row      %s from there", milliseconds(report.FirstRow)),
	}
	if report.SafeAgain > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("SAFE again             %s from there, on the other standbys", milliseconds(report.SafeAgain)))
	}
	result.Notes = append(result.Notes,
		fmt.Sprintf("lost with the primary  %d of %d acknowledged rows, which no standby had (asynchronous replication); %d of them had been delivered",
			report.Unreplicated, report.Acknowledged, gone),
		fmt.Sprintf("seed                   %d", report.Seed),
		fmt.Sprintf("lost                   %d", report.Lost()))
	if err := output.Write(w, output.Table, result); err != nil {
		return err
	}
	return writeTroubles(w, report)
}

func writeTroubles(w io.Writer, report lab.Report) error {
	for _, line := range append(report.LostRows(), report.Problems()...) {
		// What ended the round names its seed already.
		line = strings.TrimPrefix(line, fmt.Sprintf("seed %d: ", report.Seed))
		if _, err := fmt.Fprintf(w, "  seed %d: %s\n", report.Seed, line); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	return nil
}

func roundLine(report lab.Report) string {
	committed, delivered, duplicated := 0, 0, 0
	for _, a := range report.Accounts {
		committed += a.Committed
		delivered += a.Delivered
		duplicated += a.Duplicated
	}
	verdict := "ok"
	if !report.OK() {
		verdict = "NOT OK"
	}
	return fmt.Sprintf("%-6s seed=%d mirrored=%t committed=%d delivered=%d duplicated=%d lost=%d errors=%d safe=%s ready=%s cycles=%d promotion=%s first_row=%s safe_again=%s",
		verdict, report.Seed, report.Mirrored, committed, delivered, duplicated, report.Lost(), len(report.Problems()),
		milliseconds(report.SafeAfter), milliseconds(report.ReadyAfter), report.ReadyCycles,
		milliseconds(report.Promotion), milliseconds(report.FirstRow), milliseconds(report.SafeAgain))
}

// writeSummary is what many rounds come to.
func writeSummary(w io.Writer, reports []lab.Report) error {
	lost, mirrored, problems := 0, 0, 0
	var worstCycles int
	durations := map[string][]time.Duration{}
	for _, report := range reports {
		lost += report.Lost()
		problems += len(report.Problems())
		if report.Mirrored {
			mirrored++
		}
		worstCycles = max(worstCycles, report.ReadyCycles)
		for name, d := range map[string]time.Duration{
			"time to SAFE": report.SafeAfter, "new slot SAFE": report.ReadyAfter, "promotion": report.Promotion,
			"time to first row": report.FirstRow, "SAFE again": report.SafeAgain,
		} {
			if d > 0 {
				durations[name] = append(durations[name], d)
			}
		}
	}
	result := output.Result{Header: []string{"measured", "median", "worst", "rounds"}}
	for _, name := range []string{"time to SAFE", "new slot SAFE", "promotion", "time to first row", "SAFE again"} {
		if ds := durations[name]; len(ds) > 0 {
			slices.Sort(ds)
			result.Rows = append(result.Rows, []string{name, milliseconds(ds[len(ds)/2]), milliseconds(ds[len(ds)-1]), fmt.Sprint(len(ds))})
		}
	}
	result.Notes = []string{
		"",
		fmt.Sprintf("a new slot was SAFE within %s at worst", cycles(worstCycles)),
		fmt.Sprintf("%d rounds: %d lost, %d of %d mirrored, %d errors", len(reports), lost, mirrored, len(reports), problems),
	}
	return output.Write(w, output.Table, result)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func cycles(n int) string {
	if n == 1 {
		return "1 cycle"
	}
	return fmt.Sprintf("%d cycles", n)
}
