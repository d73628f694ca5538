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
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/doctor"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
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
		if err := output.Write(cmd.OutOrStdout(), *format, diagnosis(found, observed, *fix)); err != nil {
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
	seen, err := lookAtEtcd(ctx, c)
	switch {
	case err == nil:
		return seen, nil
	case errors.Is(err, etcd.ErrOptions):
		return doctor.Etcd{}, storeError(err, c)
	case errors.Is(err, etcd.ErrNotRunning):
		return doctor.Etcd{Stopped: true}, nil
	}
	return doctor.Etcd{Err: oneLine(err.Error()), Hint: "look at etcd and at the etcd section of the configuration; mirrors stay as they are meanwhile"}, nil
}

func lookAtEtcd(ctx context.Context, c *config.Config) (doctor.Etcd, error) {
	st, err := joinStore(ctx, c, hclog.NewNullLogger())
	if err != nil {
		return doctor.Etcd{}, err
	}
	defer st.Close()
	holder, err := st.client.Leader(ctx)
	if err != nil {
		return doctor.Etcd{}, err
	}
	seen := doctor.Etcd{Leader: holder.V.Name}
	if space, err := st.client.Space(ctx); err == nil {
		seen.Used, seen.Quota = space.Used, space.Quota
	}
	seen.Compacted, seen.Revisions, err = st.client.Compacted(ctx)
	return seen, err
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
	Ledger   ledgerDocument   `json:"ledger"`
}

// ledgerDocument says what the ledger costs its etcd at most, while all moves.
type ledgerDocument struct {
	BytesPerDay     int64 `json:"bytes_per_day"`
	LargeBytes      int64 `json:"large_bytes_per_day"` // with 1000 slots on 5 standbys
	EtcdUsedBytes   int64 `json:"etcd_used_bytes"`     // 0: not known
	EtcdQuotaBytes  int64 `json:"etcd_quota_bytes"`    // 0: not known
	Slots, Standbys int   `json:"-"`
}

func ledgerCost(seen doctor.Observation) ledgerDocument {
	d := ledgerDocument{EtcdUsedBytes: seen.Etcd.Used, EtcdQuotaBytes: seen.Etcd.Quota, Standbys: max(0, len(seen.Members)-1)}
	slots := map[string]bool{}
	for _, v := range seen.Verdicts {
		slots[v.Slot] = true
	}
	d.Slots = len(slots)
	d.BytesPerDay, d.LargeBytes = perDay(d.Slots, d.Standbys), perDay(1000, 5)
	return d
}

func perDay(slots, standbys int) int64 {
	size, err := status.MovingBytes(slots, standbys)
	if err != nil {
		return 0 // plain numbers are always encoded
	}
	return controller.PerDay(size)
}

func (d ledgerDocument) String() string {
	text := fmt.Sprintf("ledger: %s a day at most for %s on %s (%s for 1000 slots on 5 standbys)",
		bytesText(d.BytesPerDay), counted(d.Slots, "slot"), standbysText(d.Standbys), bytesText(d.LargeBytes))
	if d.EtcdQuotaBytes > 0 {
		text += fmt.Sprintf(", etcd uses %s of %s", bytesText(d.EtcdUsedBytes), bytesText(d.EtcdQuotaBytes))
	}
	return text
}

func diagnosis(found []doctor.Finding, seen doctor.Observation, fix bool) output.Result {
	members, cost := len(seen.Members), ledgerCost(seen)
	r := output.Result{
		Document: diagnosisDocument{Members: members, Checks: doctor.Checks(), Findings: found, Ledger: cost},
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
	r.Notes = append([]string{summary, cost.String()}, r.Notes...)
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

func standbysText(n int) string {
	if n == 1 {
		return "1 standby"
	}
	return fmt.Sprintf("%d standbys", n)
}
