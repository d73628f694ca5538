package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func newPlanCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what the next cycle would do, and do nothing",
		Long: `Reads every node and the ledger, decides as the daemon would, and prints the
steps. It does not lead, and it changes nothing on any server. With -o json it
prints the plan as the daemon executes it.

Ends with 0 when there is a plan, also an empty one, and with 4 when there is
no primary to plan for.`,
		Args: noArgs,
	}
	format := outputFlag(cmd, output.Table)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		p, observed, err := makePlan(cmd, loaded.Config)
		if err != nil {
			return err
		}
		if err := output.Write(cmd.OutOrStdout(), *format, planResult(p)); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(observed.Nodes)) {
			if fact := observed.Nodes[name]; fact.Err != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), silentMember(name, withHint(fact.Err, fact.Hint)))
			}
		}
		if p.Primary == "" {
			return quiet(exitUnknown)
		}
		return nil
	}
	return cmd
}

func makePlan(cmd *cobra.Command, c *config.Config) (plan.Plan, plan.Observation, error) {
	ctx := cmd.Context()
	look, err := lookOn(ctx, c)
	if err != nil {
		return plan.Plan{}, plan.Observation{}, storeError(err, c)
	}
	if look.epoch == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "slotkeeper: no controller has led yet: this is the plan of the first one")
	}
	topology, err := readTopology(ctx, c)
	if err != nil {
		return plan.Plan{}, plan.Observation{}, err
	}
	loop := newController(c, seen(topology), nil, quietLogger(cmd.ErrOrStderr()))
	defer loop.Close()
	if err := loop.Begin(ctx, look); err != nil {
		return plan.Plan{}, plan.Observation{}, err
	}
	p, observed := loop.Plan(ctx)
	return p, observed, ctx.Err()
}

// lookOn reads leader and ledger without leading. The embedded server of a
// daemon that is stopped is started for a moment; a data_dir that does not
// exist is not made.
func lookOn(ctx context.Context, c *config.Config) (bystander, error) {
	b := bystander{ctx: ctx}
	st, err := joinStore(ctx, c, hclog.NewNullLogger())
	if errors.Is(err, etcd.ErrNotRunning) {
		if _, serr := os.Stat(c.Etcd.DataDir); serr != nil {
			return b, nil
		}
		st, err = openStore(ctx, c, hclog.NewNullLogger())
	}
	if err != nil {
		return b, err
	}
	defer st.Close()
	if b.parts, err = loadLedger(ctx, st.client.Ledger()); err != nil {
		return b, err
	}
	mem, err := status.Recall(b.parts)
	if err != nil {
		return b, err
	}
	b.epoch, b.store = mem.Epoch, mem.Store
	holder, err := st.client.Leader(ctx)
	if err == nil && holder.OK {
		b.epoch = holder.V.Epoch
	}
	return b, err
}

func planResult(p plan.Plan) output.Result {
	// A program that goes through them wants lists, also of nothing.
	p.Steps, p.Verdicts, p.Conditions = listed(p.Steps), listed(p.Verdicts), listed(p.Conditions)
	r := output.Result{Document: p, Header: []string{"stage", "node", "step", "slots", "why"}}
	for _, s := range p.Steps {
		r.Rows = append(r.Rows, []string{fmt.Sprint(int(s.Stage)), s.Node, string(s.Kind), strings.Join(stepNames(s), " "), s.Why})
	}
	primary := p.Primary
	if primary == "" {
		primary = "none"
	}
	r.Notes = append(r.Notes, fmt.Sprintf("primary %s, %s", primary, counted(len(p.Steps), "step")))
	for _, c := range p.Conditions {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s: %s", c.Severity, c.Code, withHint(c.Message, c.Hint)))
	}
	for _, v := range p.Verdicts {
		if v.State != plan.Safe {
			r.Notes = append(r.Notes, oneLine(fmt.Sprintf("slot %s on %s: %s %s: %s", v.Slot, v.Standby, v.State, v.Reason, withHint(v.Message, v.Hint))))
		}
	}
	return r
}

func listed[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// stepNames are the slots that a step is about.
func stepNames(s plan.Step) []string {
	names := append([]string{}, s.Names...)
	for _, c := range s.Changes {
		names = append(names, c.Name)
	}
	for _, w := range s.Wants {
		if w.Slot != "" {
			names = append(names, w.Slot)
		}
	}
	return names
}
