package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

// showSwitchover writes the document, and says on standard error why it is not all
// that was wanted.
func showSwitchover(cmd *cobra.Command, f output.Format, r switchover.Result) error {
	code := r.Outcome.ExitCode()
	if code == exitOK || f != output.Table || len(r.Slots) > 0 {
		if err := output.Write(cmd.OutOrStdout(), f, switchoverResult(r)); err != nil {
			return err
		}
	}
	if code == exitOK {
		return nil
	}
	return exitf(code, "%s", oneLine(withHint(r.Message, r.Hint)))
}

var switchoverHeader = []string{"slot", "database", "usable", "confirmed", "mirror", "consumer", "duplicates", "problem"}

func switchoverResult(r switchover.Result) output.Result {
	res := output.Result{Document: r}
	if len(r.Slots) > 0 {
		res.Header = switchoverHeader
	}
	for _, s := range r.Slots {
		usable := "no"
		if s.Usable {
			usable = "yes"
		}
		problem := s.Problem
		if s.FailoverPending && problem == "" {
			problem = "failover_flag_pending"
		}
		res.Rows = append(res.Rows, []string{
			s.Name, s.Database, usable, optional(s.Confirmed, cluster.LSN.String), optional(s.Mirror, cluster.LSN.String),
			optional(s.Consumer, cluster.LSN.String), optional(s.Duplicates, bytesText), problem,
		})
	}
	res.Notes = append(res.Notes, oneLine(fmt.Sprintf("%s: %s", r.Outcome, withHint(r.Message, r.Hint))))
	if r.TimelineAfter.OK {
		res.Notes = append(res.Notes, fmt.Sprintf("timeline %d, from %s on after timeline %d; without a primary for %s",
			r.TimelineAfter.V, optional(r.Fork, cluster.LSN.String), r.TimelineBefore.V, outage(r.Outage)))
	}
	if r.Patroni.OK {
		res.Notes = append(res.Notes, oneLine(fmt.Sprintf("Patroni answered %d: %s", r.Patroni.V.Status, r.Patroni.V.Text)))
	}
	for _, a := range r.Gate {
		res.Notes = append(res.Notes, oneLine(fmt.Sprintf("gate of %s: %s", a.Node, a.Line)))
	}
	for _, w := range r.Walsenders {
		res.Notes = append(res.Notes, oneLine(fmt.Sprintf("not all confirmed at %s: %s", r.AskedLast.V.UTC().Format(time.TimeOnly+"Z"), w)))
	}
	if old := r.OldPrimary; old.OK {
		text := fmt.Sprintf("the old primary %s: %s", old.V.Node, old.V.Role)
		if old.V.Safe {
			text += ", every slot SAFE on it"
		}
		res.Notes = append(res.Notes, text)
	}
	return res
}

func outage(s cluster.Opt[float64]) string {
	if !s.OK {
		return "an unknown time (this run has not seen it)"
	}
	return strconv.FormatFloat(s.V, 'f', 1, 64) + "s"
}
