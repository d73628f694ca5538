package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/doctor"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

func newDoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what would keep slotkeeper from its work, and say how to mend it",
		Long: `Looks at the configuration and the files that it names, at etcd, and at each
member: that it answers and is of the same cluster, the extension and its
versions, the role's privileges, settings, room for mirrors, the physical slots
that standbys stream through, and the hold. It needs neither the daemon nor any
privilege to begin with, and changes nothing.

With --fix it prints, after what it found, the SQL that mends it, for a superuser
to run; slotkeeper itself runs none of it. Beside Patroni, where a slot would be
dropped that ignore_slots could cover, it asks and then changes that by Patroni's
REST API (--yes does not ask).

Ends with 0 when nothing was found or what was found only informs, 4 when etcd or
a member did not answer, so that there may be more to find, 3 when something else
deserves a warning, and 2 when the configuration itself is wrong.`,
		Args: noArgs,
	}
	format := outputFlag(cmd, output.Table)
	fix := cmd.Flags().Bool("fix", false, "print the SQL that mends what was found, and mend Patroni's ignore_slots")
	yes := cmd.Flags().Bool("yes", false, "with --fix: change Patroni's configuration without asking")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		observed, err := examine(cmd.Context(), loaded.Config)
		if err != nil {
			return err
		}
		found := doctor.Diagnose(observed)
		if err := output.Write(cmd.OutOrStdout(), *format, diagnosis(found, len(observed.Members), *fix)); err != nil {
			return err
		}
		if *fix {
			if found, err = mendPatroni(cmd, loaded.Config, found, *yes); err != nil {
				return err
			}
		}
		return quiet(diagnosisCode(found))
	}
	return cmd
}

func diagnosisCode(found []doctor.Finding) int {
	switch {
	case doctor.Unreachable(found):
		return exitUnknown
	case !doctor.Sound(found):
		return exitNotSafe
	}
	return exitOK
}

// examine looks at everything side by side.
func examine(ctx context.Context, c *config.Config) (doctor.Observation, error) {
	topology, err := readTopology(ctx, c)
	if err != nil {
		return doctor.Observation{}, err
	}
	o := doctor.Observation{Policy: policy(c), Members: make([]doctor.Member, len(topology.Members)), Manager: topology.Manager, Leader: topology.Leader}
	var all sync.WaitGroup
	for i, m := range topology.Members {
		all.Go(func() { o.Members[i] = examineMember(ctx, c, m) })
	}
	var wrong error
	all.Go(func() { o.Etcd, wrong = examineEtcd(ctx, c) })
	all.Go(func() { o.Verdicts = lastVerdicts(ctx, c) })
	all.Wait()
	return o, errors.Join(wrong, ctx.Err())
}

func examineMember(ctx context.Context, c *config.Config, m cluster.Member) doctor.Member {
	d := doctor.Member{Name: m.Name}
	session, err := openSession(c, m)
	if err != nil {
		d.Inspection = factOf(cluster.Inspection{}, err)
		return d
	}
	defer session.Close()
	i, err := session.Inspect(ctx)
	if d.Inspection = factOf(i, err); err != nil {
		return d
	}
	r, err := session.Read(ctx)
	d.Read = factOf(plan.NodeRead{Node: r.Node, Slots: r.Slots, Walsenders: r.Walsenders}, err)
	return d
}

// factOf is an answer, or why there is none.
func factOf[T any](value T, err error) plan.Fact[T] {
	f := plan.Fact[T]{Value: value, At: time.Now()}
	if err == nil {
		return f
	}
	f.Err, f.Reason = oneLine(err.Error()), plan.Reason(postgres.Classify(err))
	var why *postgres.Fault
	if errors.As(err, &why) {
		f.Hint = oneLine(why.Hint())
	}
	return f
}

// examineEtcd gives an error only where the configuration of etcd is wrong.
func examineEtcd(ctx context.Context, c *config.Config) (doctor.Etcd, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	holder, err := leaderThere(ctx, c)
	switch {
	case err == nil:
		return doctor.Etcd{Leader: holder.V.Name}, nil
	case errors.Is(err, etcd.ErrOptions):
		return doctor.Etcd{}, storeError(err, c)
	case errors.Is(err, etcd.ErrNotRunning):
		return doctor.Etcd{Stopped: true}, nil
	}
	return doctor.Etcd{Err: oneLine(err.Error()), Hint: "look at etcd and at the etcd section of the configuration; mirrors stay as they are meanwhile"}, nil
}

func leaderThere(ctx context.Context, c *config.Config) (cluster.Opt[etcd.Holder], error) {
	st, err := joinStore(ctx, c, hclog.NewNullLogger())
	if err != nil {
		return cluster.Opt[etcd.Holder]{}, err
	}
	defer st.Close()
	return st.client.Leader(ctx)
}

// lastVerdicts are those that the daemon or the ledger shows; where neither
// does, the checks go without.
func lastVerdicts(ctx context.Context, c *config.Config) []plan.Verdict {
	s, err := fetchStatus(ctx, c)
	if err != nil {
		return nil
	}
	var all []plan.Verdict
	for _, slot := range s.Slots {
		for _, p := range slot.Standbys {
			all = append(all, plan.Verdict{Slot: slot.Name, Standby: p.Node, State: p.Verdict, Reason: p.Reason, Message: p.Message, Hint: p.Hint})
		}
	}
	return all
}

// diagnosisDocument is what programs get.
type diagnosisDocument struct {
	Members  int              `json:"members"`
	Checks   int              `json:"checks"`
	Findings []doctor.Finding `json:"findings"`
}

func diagnosis(found []doctor.Finding, members int, fix bool) output.Result {
	r := output.Result{
		Document: diagnosisDocument{Members: members, Checks: doctor.Checks(), Findings: found},
		Header:   []string{"severity", "subject", "code", "message", "hint"}, TSVOnly: 1,
	}
	for _, f := range found {
		r.Rows = append(r.Rows, []string{string(f.Severity), f.Subject, f.Code, oneLine(f.Message), oneLine(f.Hint)})
		if f.Hint != "" {
			r.Notes = append(r.Notes, oneLine(fmt.Sprintf("%s (%s): %s", f.Code, f.Subject, f.Hint)))
		}
	}
	if len(found) == 0 {
		r.Header = nil
	}
	summary := fmt.Sprintf("%s, %s: %s", counted(members, "member"), counted(doctor.Checks(), "check"), counted(len(found), "finding"))
	r.Notes = append([]string{summary}, r.Notes...)
	if fix {
		r.Notes = append(r.Notes, remedies(found)...)
	}
	return r
}

// remedies are the statements, each once, by where they are to be run.
func remedies(found []doctor.Finding) []string {
	var places []string
	sql := map[string][]string{}
	for _, f := range found {
		at := placeOf(f)
		if len(f.SQL) > 0 && !slices.Contains(places, at) {
			places = append(places, at)
		}
		for _, statement := range f.SQL {
			if !slices.Contains(sql[at], statement) {
				sql[at] = append(sql[at], statement)
			}
		}
	}
	if len(places) == 0 {
		return []string{"", "-- nothing that was found is mended by SQL"}
	}
	slices.Sort(places)
	lines := []string{"", "-- slotkeeper runs none of this; a superuser may"}
	for _, at := range places {
		lines = append(append(lines, "-- on "+at), sql[at]...)
	}
	return lines
}

func placeOf(f doctor.Finding) string {
	at := f.On
	if at == "" {
		at = "the primary"
	}
	if f.Database != "" {
		at += fmt.Sprintf(", in database %q", f.Database)
	}
	return at
}
