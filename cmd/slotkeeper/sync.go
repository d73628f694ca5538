package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// syncLimit is how long sync goes on with what a next cycle may mend.
const syncLimit = 30 * time.Second

func newSyncCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Bring all mirrors up to date now",
		Long: `Leads for a moment, or asks the daemon that leads, and runs cycles until every
slot is SAFE on every standby or its reason is not one that a next cycle can
mend; 30 seconds at most. Prints what is not SAFE.

Ends with 0 when everything is SAFE, 3 when something is not, 4 when it is not
known, and 5 when another controller leads that cannot be asked.`,
		Args: noArgs,
	}
	format := outputFlag(cmd, output.Table)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		s, err := syncOnce(cmd, loaded.Config)
		if err != nil {
			return err
		}
		if err := output.Write(cmd.OutOrStdout(), *format, syncResult(s)); err != nil {
			return err
		}
		safe, all := count(s)
		fmt.Fprintf(cmd.ErrOrStderr(), "slotkeeper: %d of %d pairs of slot and standby are SAFE\n", safe, all)
		return quiet(s.ExitCode())
	}
	return cmd
}

// cycler runs one cycle and gives the status after it.
type cycler func(context.Context) (status.Status, error)

func syncOnce(cmd *cobra.Command, c *config.Config) (status.Status, error) {
	ctx := cmd.Context()
	log := quietLogger(cmd.ErrOrStderr())
	st, err := leadStore(ctx, c, log)
	if err != nil {
		return status.Status{}, storeError(err, c)
	}
	defer st.Close()
	elect := &elector{client: st.client, name: c.Name}
	defer elect.close()
	t, err := elect.TryCampaign(ctx)
	var held *etcd.NotLeaderError
	if errors.As(err, &held) {
		return askLeader(ctx, c, held.Holder)
	}
	if err != nil {
		return status.Status{}, storeError(err, c)
	}
	from, err := openMembers(ctx, c, st.client)
	if err != nil {
		return status.Status{}, err
	}
	defer from.close()
	loop := newController(c, from.Source, elect, log)
	defer loop.Close()
	if err := loop.Begin(ctx, t); err != nil {
		return status.Status{}, err
	}
	return untilSettled(ctx, c, func(ctx context.Context) (status.Status, error) {
		if _, err := loop.Cycle(ctx); err != nil {
			return status.Status{}, err
		}
		if err := context.Cause(t.Context()); err != nil {
			return status.Status{}, exitf(exitNotLeader, "the leadership was lost: %w", err)
		}
		s, _ := loop.Status()
		return s, nil
	})
}

// askLeader has the daemon that leads run the cycles: the one of this
// configuration's listener, or the one at the address in the leader key.
func askLeader(ctx context.Context, c *config.Config, holder etcd.Holder) (status.Status, error) {
	var tried error
	for _, base := range []string{"", holder.HTTP} {
		if base == "" && tried != nil {
			continue
		}
		client, err := newDaemonClient(c, base)
		if err == nil {
			var s status.Status
			if s, err = client.Sync(ctx); err == nil {
				return untilSettledFrom(ctx, c, s, client.Sync)
			}
		}
		var answer *daemonError
		if errors.As(err, &answer) && answer.Code == http.StatusServiceUnavailable {
			return status.Status{}, exitf(exitUnknown, "%w", err)
		}
		tried = errors.Join(tried, err)
	}
	return status.Status{}, exitf(exitNotLeader, "%s leads, and it cannot be asked:\n%w", holder.Name, tried)
}

func untilSettled(ctx context.Context, c *config.Config, cycle cycler) (status.Status, error) {
	s, err := cycle(ctx)
	if err != nil {
		return s, err
	}
	return untilSettledFrom(ctx, c, s, cycle)
}

func untilSettledFrom(ctx context.Context, c *config.Config, s status.Status, cycle cycler) (status.Status, error) {
	if s, err := checkScope(s, c, nil); err != nil {
		return s, err
	}
	limited, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	for !settled(s) {
		select {
		case <-limited.Done():
			return s, ctx.Err()
		case <-time.After(max(c.Sync.MinGap, 20*time.Millisecond)):
		}
		next, err := cycle(limited)
		if limited.Err() != nil {
			return s, ctx.Err() // a cycle that was cut short knows less than the one before
		}
		if err != nil {
			return s, err
		}
		s = next
	}
	return s, nil
}

// settled reports whether a next cycle would not change anything for the better.
func settled(s status.Status) bool {
	if s.Primary == nil {
		return true
	}
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			if p.Verdict != plan.Safe && mendable(p) {
				return false
			}
		}
	}
	return true
}

// mendable: what is PENDING heals by itself, and these others are what the
// cycles themselves work on. The rest waits for somebody.
func mendable(p status.Standby) bool {
	switch p.Reason {
	case plan.ReasonDatabaseGone:
		return false
	case plan.ReasonSlotMissing, plan.ReasonProtectionGap, plan.ReasonHoldNotSaved, plan.ReasonConsumerAhead, plan.ReasonStale:
		return true
	}
	return p.Verdict == plan.Pending
}

func count(s status.Status) (safe, all int) {
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			all++
			if p.Verdict == plan.Safe {
				safe++
			}
		}
	}
	return safe, all
}

// notSafe is a pair as sync reports it.
type notSafe struct {
	Slot string `json:"slot"`
	status.Standby
}

type syncDocument struct {
	Pairs   int            `json:"pairs"`
	Safe    int            `json:"safe"`
	NotSafe []notSafe      `json:"not_safe"`
	Status  *status.Status `json:"status"`
}

// syncResult lists exactly what is not SAFE.
func syncResult(s status.Status) output.Result {
	doc := syncDocument{NotSafe: []notSafe{}, Status: &s}
	doc.Safe, doc.Pairs = count(s)
	r := output.Result{TSVOnly: 1}
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			if p.Verdict == plan.Safe {
				continue
			}
			doc.NotSafe = append(doc.NotSafe, notSafe{slot.Name, p})
			r.Rows = append(r.Rows, []string{slot.Name, p.Node, string(p.Verdict), string(p.Reason), p.Message, p.Hint})
		}
	}
	if len(r.Rows) > 0 {
		r.Header = []string{"slot", "standby", "verdict", "reason", "message", "hint"}
	}
	r.Notes = append(hints(s), findings(s)...)
	r.Document = doc
	return r
}
