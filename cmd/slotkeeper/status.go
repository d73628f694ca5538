package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func newStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show each slot on each standby, and whether it would survive a failover",
		Long: `Asks the daemon's HTTP listener, and where it does not answer the ledger in
etcd. Ends with 0 when everything is SAFE, 3 when something is not, and 4 when
it is not known: nobody answers, the last observation is old, or there is no
primary.`,
		Args: noArgs,
	}
	format := outputFlag(cmd, output.Table)
	watch := cmd.Flags().BoolP("watch", "w", false, "repeat until interrupted")
	interval := cmd.Flags().Duration("interval", 2*time.Second, "how often to repeat with -w")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *interval < 100*time.Millisecond {
			return usagef(cmd, "--interval %s is too short: 100ms at least", *interval)
		}
		loaded, err := load(cmd)
		if err != nil {
			return err
		}
		if !*watch {
			return showStatus(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), loaded.Config, *format)
		}
		return output.Watch(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), *interval, func(ctx context.Context, stdout, stderr io.Writer) error {
			err := showStatus(ctx, stdout, stderr, loaded.Config, *format)
			complain(stderr, err)
			return quiet(exitCode(err))
		})
	}
	return cmd
}

func showStatus(ctx context.Context, stdout, stderr io.Writer, c *config.Config, f output.Format) error {
	s, err := fetchStatus(ctx, c)
	if err != nil {
		return err
	}
	if err := output.Write(stdout, f, statusResult(s, time.Now())); err != nil {
		return err
	}
	if why := freshness(s, c, time.Now()); why != "" {
		fmt.Fprintf(stderr, "slotkeeper: %s: what is shown may not hold any more\n", why)
		return quiet(exitUnknown)
	}
	return quiet(s.ExitCode())
}

var statusHeader = []string{"slot", "database", "standby", "verdict", "reason", "lag", "proof", "message", "hint"}

// statusResult is the document as a table: a row for each pair.
func statusResult(s status.Status, now time.Time) output.Result {
	r := output.Result{Document: s, Header: statusHeader, TSVOnly: 1}
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			r.Rows = append(r.Rows, []string{
				slot.Name, slot.Database, p.Node, string(p.Verdict), string(p.Reason),
				optional(p.LagBytes, bytesText), optional(p.ProofAge, secondsText), p.Message, p.Hint,
			})
		}
		if len(slot.Standbys) == 0 {
			r.Rows = append(r.Rows, []string{slot.Name, slot.Database, "", "", "", "", "", "there is no standby", ""})
		}
	}
	r.Notes = append(r.Notes, headline(s, now))
	r.Notes = append(r.Notes, hints(s)...)
	r.Notes = append(r.Notes, findings(s)...)
	return r
}

// findings are the conditions, and the members that did not answer, a line each.
func findings(s status.Status) []string {
	var lines []string
	for _, f := range s.Conditions {
		about := f.Code
		if f.Subject != "" {
			about += " (" + f.Subject + ")"
		}
		lines = append(lines, oneLine(fmt.Sprintf("%s: %s: %s", f.Severity, about, withHint(f.Message, f.Hint))))
	}
	for _, m := range s.Members {
		if m.Error != "" {
			lines = append(lines, oneLine(fmt.Sprintf("member %s: %s", m.Node, withHint(m.Error, m.Hint))))
		}
	}
	return lines
}

// hints says once what to do about each reason: many pairs share one.
func hints(s status.Status) []string {
	var lines []string
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			line := oneLine(fmt.Sprintf("%s: %s", p.Reason, p.Hint))
			if p.Hint != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func headline(s status.Status, now time.Time) string {
	primary, leader := "none", "none"
	if s.Primary != nil {
		primary = fmt.Sprintf("%s, timeline %d", s.Primary.Node, s.Primary.Timeline)
	}
	if s.Leader.Name != "" {
		leader = s.Leader.Name
	}
	text := fmt.Sprintf("scope %s, primary %s, leader %s", s.Scope, primary, leader)
	if !s.ObservedAt.IsZero() {
		text += ", observed " + secondsText(max(0, now.Sub(s.ObservedAt).Seconds())) + " ago"
	}
	if s.Source == "ledger" {
		text += " (from the ledger)"
	}
	return text
}

func withHint(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + " Hint: " + hint
}

func optional[T any](o cluster.Opt[T], text func(T) string) string {
	if !o.OK {
		return ""
	}
	return text(o.V)
}

func bytesText(n int64) string {
	const k = 1024
	switch {
	case n < 0 || n < 10*k:
		return strconv.FormatInt(n, 10) + " B"
	case n < 10*k*k:
		return strconv.FormatInt(n/k, 10) + " kB"
	case n < 10*k*k*k:
		return strconv.FormatInt(n/k/k, 10) + " MB"
	}
	return strconv.FormatInt(n/k/k/k, 10) + " GB"
}

func secondsText(s float64) string {
	if s < 60 {
		return strconv.FormatFloat(s, 'f', 1, 64) + "s"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
