package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/gate"
)

func newGateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Say whether a standby may be promoted: for Patroni's pre_promote",
		Long: `Runs on a candidate, just before it is promoted, and answers within
promotion.deadline, whatever hangs or is down. It proves each mirror of this node
again, reads from the ledger which slots there should be and how far their
consumers have confirmed, and decides by promotion.policy:

  prefer   refuses only while another live member would lose nothing and could be
           promoted, at most promotion.max_refusals times in one failover
  strict   refuses whenever this node is not known to be safe
  observe  never refuses

Before it lets a node through it drops the mirrors that are not proven there: a
consumer must not find them. Prints one line on standard error and keeps it in
etcd; a refusal counts for the next failover. With --dry-run it says the same and
drops and keeps nothing: for a look by hand. Ends with 0 to allow and 3 to refuse; without a readable configuration it
allows, and says so.`,
		Args: noArgs,
	}
	node := cmd.Flags().String("node", "", "the candidate's `NAME`, as the members are called")
	dry := cmd.Flags().Bool("dry-run", false, "only say what the answer would be")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *node == "" {
			return usagef(cmd, "--node is missing: the name of the member that would be promoted")
		}
		stderr := cmd.ErrOrStderr()
		cmd.SetErr(io.Discard) // the answer is one line; warnings are for other commands
		answer := askGate(cmd, *node, *dry, time.Now())
		sayAnswer(stderr, answer.Line)
		if !answer.Allow {
			return quiet(exitNotSafe)
		}
		return nil
	}
	return cmd
}

// sayAnswer prints the one line. A full disk or a closed pipe must not change the
// answer, and one that blocks must not hold it up.
func sayAnswer(w io.Writer, line string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fmt.Fprintf(w, "slotkeeper: gate: %s\n", output.Printable(oneLine(line)))
	}()
	select {
	case <-done:
	case <-time.After(200 * time.Millisecond):
	}
}

// askGate answers in time. Everything that could hang is in goroutines that are
// left behind: the process ends with the answer.
func askGate(cmd *cobra.Command, node string, dry bool, begun time.Time) gate.Decision {
	type loadResult struct {
		loaded *config.Loaded
		err    error
	}
	read := make(chan loadResult, 1)
	go func() {
		loaded, err := loadWithFiles(cmd)
		read <- loadResult{loaded, err}
	}()
	var c *config.Config
	select {
	case r := <-read:
		if r.err != nil {
			return unasked("the configuration cannot be used: " + strings.ReplaceAll(r.err.Error(), "\n", "; "))
		}
		c = r.loaded.Config
	case <-time.After(config.Default().Promotion.Deadline / 2):
		return unasked("the configuration could not be read in time")
	}
	// What is left after the facts are in: the drops, the note and the line.
	deadline := begun.Add(c.Promotion.Deadline)
	reserve := min(c.Promotion.Deadline/4, time.Second)
	ctx, cancel := context.WithDeadline(cmd.Context(), deadline)
	defer cancel()
	g := &gateKeeper{config: c, node: node}
	facts := g.gather(ctx, deadline.Add(-reserve))
	d := gate.Decide(time.Now(), gatePolicy(c), facts)
	if dry {
		return d
	}
	finished := make(chan gate.Decision, 1)
	go func() { finished <- g.finish(ctx, d) }()
	select {
	case d = <-finished:
	case <-time.After(time.Until(deadline) - reserve/4):
		if d.Allow && len(d.Drop) > 0 {
			d.Line += "; dropping what is not proven did not end in time"
		}
	}
	return d
}

// unasked lets the node through: a gate that cannot even be asked must not be the
// reason that nobody takes over.
func unasked(why string) gate.Decision {
	return gate.Decision{Allow: true, Code: "unknown", Line: "allow, nothing was looked at: " + why}
}

func gatePolicy(c *config.Config) gate.Policy {
	return gate.Policy{
		Scope: c.Scope, Mode: gate.Mode(c.Promotion.Policy),
		MaxRefusals: c.Promotion.MaxRefusals, MaxProofAge: c.Promotion.MaxProofAge,
	}
}

// finish drops what is not proven, if the node is let through, and notes the answer.
func (g *gateKeeper) finish(ctx context.Context, d gate.Decision) gate.Decision {
	if d.Allow && len(d.Drop) > 0 {
		d.Line += "; " + g.drop(ctx, d.Drop)
	}
	g.mu.Lock() // what came too late for the facts may still come
	store, timeline := g.store, g.timeline
	g.mu.Unlock()
	if store != nil && timeline != 0 {
		err := store.client.NoteAnswer(ctx, timeline, etcd.Answer{Node: g.node, At: time.Now(), Allow: d.Allow, Code: d.Code, Line: d.Line})
		if err != nil {
			d.Line += "; this answer could not be noted in etcd: " + oneLine(err.Error())
		}
	}
	return d
}
