package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func newWaitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until slots are SAFE",
		Long: `Ends with 0 once every slot (or each --slot) is SAFE on every standby (or each
--standby), in a complete observation that began after this command. A daemon
that is not up yet is waited for, and so are a slot and a standby that are not
there yet; no slot at all, or no standby, is never success.

Ends with 6 when the time is over, and says what is missing.`,
		Args: noArgs,
	}
	slots := cmd.Flags().StringArray("slot", nil, "wait for this slot only; may be repeated")
	standbys := cmd.Flags().StringArray("standby", nil, "wait on this standby only; may be repeated")
	timeout := cmd.Flags().Duration("timeout", 60*time.Second, "how long to wait")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *timeout <= 0 {
			return usagef(cmd, "--timeout %s is no time to wait", *timeout)
		}
		if slices.Contains(*slots, "") || slices.Contains(*standbys, "") {
			return usagef(cmd, "--slot and --standby want a name")
		}
		loaded, err := load(cmd)
		if err != nil {
			return err
		}
		w := &waiter{config: loaded.Config, slots: *slots, standbys: *standbys, begun: time.Now()}
		if err := w.knownStandbys(); err != nil {
			return err
		}
		return w.wait(cmd.Context(), *timeout)
	}
	return cmd
}

// waiter waits for slots on standbys; none of a kind means all.
type waiter struct {
	config          *config.Config
	slots, standbys []string
	begun           time.Time

	leader   *daemonClient // of another machine, where this one's daemon follows
	lookedUp time.Time
}

// knownStandbys refuses a standby that the configuration does not have: it
// would be waited for in vain.
func (w *waiter) knownStandbys() error {
	if w.config.Cluster.Source == config.SourcePatroni {
		return nil // Patroni's members come and go
	}
	for _, name := range w.standbys {
		known := false
		for _, m := range w.config.Cluster.Members {
			known = known || m.Name == name
		}
		if !known {
			return exitf(exitUsage, "--standby %s: %s has no such member", name, w.config.File)
		}
	}
	return nil
}

// pollEvery is how often the daemon is asked: the last answer is a copy in its
// memory.
const pollEvery = 100 * time.Millisecond

func (w *waiter) wait(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	missing := []string{"no daemon answered"}
	for {
		s, err := w.look(ctx)
		switch {
		case err == nil:
			if missing = w.missing(s); len(missing) == 0 {
				return nil
			}
		case ctx.Err() != nil:
		case config.IsError(err) || hopeless(err):
			return err
		default:
			missing = []string{oneLine(err.Error())}
		}
		select {
		case <-time.After(pollEvery):
			continue
		case <-ctx.Done():
		}
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return exitf(exitTimeout, "not SAFE after %s:\n%s", timeout, strings.Join(missing, "\n"))
		}
		return exitf(exitError, "interrupted; not SAFE yet:\n%s", strings.Join(missing, "\n"))
	}
}

// look asks the daemon, and where that one only follows the one that leads: it
// knows at once what the ledger knows half a minute later.
func (w *waiter) look(ctx context.Context) (status.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := statusFromDaemon(ctx, w.config)
	if errors.Is(err, errNoListener) {
		s, err = statusFromLedger(ctx, w.config)
	}
	if err == nil && s.Source == "ledger" {
		if better, lerr := w.askLeader(ctx); lerr == nil {
			s = better
		}
	}
	return checkScope(s, w.config, err)
}

func (w *waiter) askLeader(ctx context.Context) (status.Status, error) {
	if time.Since(w.lookedUp) > 2*time.Second {
		w.leader, w.lookedUp = nil, time.Now()
		holder, err := leaderOf(ctx, w.config)
		if err != nil {
			return status.Status{}, err
		}
		if holder.HTTP != "" {
			if w.leader, err = newDaemonClient(w.config, holder.HTTP); err != nil {
				return status.Status{}, err
			}
		}
	}
	if w.leader == nil {
		return status.Status{}, errNoListener
	}
	return w.leader.Status(ctx)
}

// hopeless errors do not go away by waiting: another scope, no admission.
func hopeless(err error) bool {
	var exit *ExitError
	var answer *daemonError
	return errors.As(err, &exit) || (errors.As(err, &answer) && answer.Code >= 400 && answer.Code < 500)
}

// missing lists what keeps the wait from its end; nothing: all is SAFE.
func (w *waiter) missing(s status.Status) []string {
	var lines []string
	if !s.ObservedAt.After(w.begun) {
		lines = append(lines, "no observation has begun since this command did")
	}
	// The ledger does not say whether all members answered; the verdicts of those
	// that did not are UNKNOWN in it. So they are of standbys that were not asked for.
	everybody := len(w.standbys) == 0 && s.Source != "ledger"
	if s.Primary == nil {
		lines = append(lines, "there is no primary")
	} else if everybody && !s.Complete {
		lines = append(lines, "the observation is not complete: "+silent(s))
	}
	found := map[string]bool{}
	for _, slot := range s.Slots {
		if len(w.slots) > 0 && !slices.Contains(w.slots, slot.Name) {
			continue
		}
		found[slot.Name] = true
		lines = append(lines, w.missingOf(slot)...)
	}
	for _, name := range w.slots {
		if !found[name] {
			lines = append(lines, fmt.Sprintf("slot %s: there is no such slot on the primary, or the configuration does not select it", name))
		}
	}
	if len(found) == 0 && len(w.slots) == 0 {
		lines = append(lines, "there is no slot")
	}
	return lines
}

func silent(s status.Status) string {
	var names []string
	for _, m := range s.Members {
		if m.Role == "unknown" {
			names = append(names, m.Node)
		}
	}
	if len(names) == 0 {
		return "the topology is not known"
	}
	return "no answer of " + strings.Join(names, ", ")
}

func (w *waiter) missingOf(slot status.Slot) []string {
	var lines []string
	found := map[string]bool{}
	for _, p := range slot.Standbys {
		if len(w.standbys) > 0 && !slices.Contains(w.standbys, p.Node) {
			continue
		}
		found[p.Node] = true
		if p.Verdict != plan.Safe {
			lines = append(lines, pairLine(slot.Name, p))
		}
	}
	for _, name := range w.standbys {
		if !found[name] {
			lines = append(lines, fmt.Sprintf("slot %s on %s: not a standby at present", slot.Name, name))
		}
	}
	if len(found) == 0 && len(w.standbys) == 0 {
		lines = append(lines, fmt.Sprintf("slot %s: there is no standby", slot.Name))
	}
	return lines
}

// pairLine is one pair that is not SAFE, on one line.
func pairLine(slot string, p status.Standby) string {
	return oneLine(fmt.Sprintf("slot %s on %s: %s %s: %s", slot, p.Node, p.Verdict, p.Reason, withHint(p.Message, p.Hint)))
}
