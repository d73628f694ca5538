package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/primary"
)

// verifyLimit bounds the walks of one run; each is bounded by query_timeout too.
const verifyLimit = 5 * time.Minute

func newVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Say for each slot of the current primary whether a consumer could go on",
		Long: `Looks, on the current primary, at each selected slot (or each --slot): that it
is not invalidated, that its WAL is there, and that decoding from its
restart_lsn becomes consistent before its confirmed_flush_lsn, so that nothing
would be left out. It consumes nothing and disturbs nobody; a slot that is in
use is said to be. Needs neither the daemon nor etcd: after a promotion it names
the slots at which no controller has looked since.

Ends with 0 when a consumer could go on at every slot, 3 when not, 4 when there
is no primary or it does not answer.`,
		Args: noArgs,
	}
	slots := cmd.Flags().StringArray("slot", nil, "look at this slot only; may be repeated")
	format := outputFlag(cmd, output.Table)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if slices.Contains(*slots, "") {
			return usagef(cmd, "--slot wants a name")
		}
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), verifyLimit)
		defer cancel()
		found, err := verifySlots(ctx, loaded.Config, *slots)
		if err != nil {
			return err
		}
		if err := output.Write(cmd.OutOrStdout(), *format, verifyResult(found)); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(found.Silent)) {
			fmt.Fprintln(cmd.ErrOrStderr(), silentMember(name, found.Silent[name]))
		}
		return quiet(found.exitCode())
	}
	return cmd
}

type verification struct {
	Primary string            `json:"primary"`
	Slots   []verifiedSlot    `json:"slots"`
	Silent  map[string]string `json:"silent"` // members that did not answer, and why
}

type verifiedSlot struct {
	Name      string                   `json:"name"`
	Database  string                   `json:"database"`
	Plugin    string                   `json:"plugin"`
	Usable    bool                     `json:"usable"`
	unknown   bool                     // it could not be found out
	Way       string                   `json:"way"`
	ProvenAt  cluster.Opt[cluster.LSN] `json:"proven_at"`
	Restart   cluster.Opt[cluster.LSN] `json:"restart_lsn"`
	Confirmed cluster.Opt[cluster.LSN] `json:"confirmed_flush_lsn"`
	ActivePID int32                    `json:"active_pid"`
	Problem   string                   `json:"problem"`
	Unjudged  bool                     `json:"unjudged"` // it is marked as a mirror still: no controller has looked at it since the promotion
}

func (v verification) exitCode() int {
	code := exitOK
	for _, s := range v.Slots {
		switch {
		case s.unknown && code == exitOK:
			code = exitUnknown
		case !s.Usable && !s.unknown:
			code = exitNotSafe
		}
	}
	return code
}

func verifySlots(ctx context.Context, c *config.Config, names []string) (verification, error) {
	peers, err := readAll(ctx, c)
	if err != nil {
		return verification{}, err
	}
	defer closeAll(peers)
	p := primaryOf(peers, time.Now())
	if p == nil {
		return verification{}, exitf(exitUnknown, "there is no primary among %s", roles(peers))
	}
	v := verification{Primary: p.member.Name, Slots: []verifiedSlot{}, Silent: map[string]string{}}
	for _, other := range peers {
		if other.err != nil {
			v.Silent[other.member.Name] = explain(other.err)
		}
	}
	rules := policy(c)
	for _, s := range p.read.Slots {
		wanted := rules.Selected(s)
		if len(names) > 0 {
			wanted = slices.Contains(names, s.Name)
		}
		if wanted {
			v.Slots = append(v.Slots, verifySlot(ctx, p, s))
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(v.Slots, func(s verifiedSlot) bool { return s.Name == name }) {
			v.Slots = append(v.Slots, verifiedSlot{Name: name, Problem: "there is no such slot on " + p.member.Name})
		}
	}
	return v, nil
}

// roles says of each member what it is, or why that is not known.
func roles(peers []*peer) string {
	var lines []string
	for _, p := range peers {
		what := "a standby"
		switch {
		case p.err != nil:
			what = explain(p.err)
		case !p.read.Node.InRecovery:
			what = fmt.Sprintf("writable on timeline %d", p.read.Node.Timeline)
		}
		lines = append(lines, fmt.Sprintf("%s: %s", p.member.Name, what))
	}
	return "the members:\n" + strings.Join(lines, "\n")
}

// verifySlot looks at one slot. One in use may move on while its WAL is walked,
// and what it needed goes; then it is read and walked once more.
func verifySlot(ctx context.Context, p *peer, s cluster.Slot) verifiedSlot {
	v := walkSlot(ctx, p, s)
	if v.Usable || s.ActivePID == 0 {
		return v
	}
	again, err := p.session.Read(ctx)
	if err != nil {
		return v
	}
	for _, fresh := range again.Slots {
		if fresh.Name == s.Name && fresh.Incarnation.Same(s.Incarnation) {
			return walkSlot(ctx, p, fresh)
		}
	}
	return v
}

func walkSlot(ctx context.Context, p *peer, s cluster.Slot) verifiedSlot {
	v := verifiedSlot{
		Name: s.Name, Database: s.Database, Plugin: s.Plugin,
		Restart: s.Restart, Confirmed: s.Confirmed, ActivePID: s.ActivePID,
		Unjudged: s.Marker != nil && s.Marker.Kind == cluster.MarkMirror,
	}
	at, ok := s.Position()
	switch {
	case s.Kind != cluster.Logical:
		v.Problem = "it is a physical slot"
		return v
	case s.Invalidated != "":
		v.Problem = fmt.Sprintf("it is invalidated (%s): drop it, and have its consumer start anew from a copy", s.Invalidated)
		return v
	case !ok:
		v.Problem = "it has no position: it is still being made, or its making was interrupted"
		return v
	case !s.WALok:
		v.Problem = fmt.Sprintf("WAL from %s on is not there any more", at.Restart)
		return v
	}
	proof, err := primary.ConsistentPoint(ctx, p.session, at, plan.DefaultMaxWalk)
	switch {
	case err != nil:
		v.unknown, v.Problem = true, explain(err)
	case proof.Way == "":
		v.Problem = fmt.Sprintf("decoding from %s does not become consistent before %s: transactions would be left out", at.Restart, at.Confirmed)
	default:
		v.Usable, v.Way, v.ProvenAt = true, proof.Way, proof.ProvenAt
	}
	return v
}

func verifyResult(v verification) output.Result {
	var unjudged []string
	r := output.Result{Document: v, Header: []string{"slot", "database", "usable", "way", "restart_lsn", "confirmed_flush_lsn", "in use", "problem"}}
	for _, s := range v.Slots {
		usable, inUse := "no", "no"
		switch {
		case s.unknown:
			usable = "UNKNOWN"
		case s.Usable:
			usable = "yes"
		}
		if s.Unjudged {
			unjudged = append(unjudged, s.Name)
		}
		if s.ActivePID != 0 {
			inUse = fmt.Sprintf("by %d", s.ActivePID)
		}
		r.Rows = append(r.Rows, []string{s.Name, s.Database, usable, s.Way, optional(s.Restart, cluster.LSN.String), optional(s.Confirmed, cluster.LSN.String), inUse, s.Problem})
	}
	r.Notes = append(r.Notes, fmt.Sprintf("primary %s, %s", v.Primary, counted(len(v.Slots), "slot")))
	if len(unjudged) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("marked as mirrors still: %s. No controller has looked at them since the promotion: whether they were protected before it stands in the ledger only. Where no daemon does it, \"slotkeeper sync\" drops those that were not",
			strings.Join(unjudged, ", ")))
	}
	return r
}
