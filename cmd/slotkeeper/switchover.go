package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

func newSwitchoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "switchover",
		Short: "Hand the primary's role over to a standby, by Patroni, without losing a slot",
		Long: `Asks Patroni for a switchover, once, when nothing speaks against it:

  preflight    the candidate streams, may be promoted, and every slot is SAFE on it;
               without --to it is the most advanced such standby
  catch_up     waits until the candidate and its mirrors are where the primary is
  record, ask  keeps in etcd what is asked, then asks Patroni on the leader
  handover     waits until another one leads, by Patroni's keys and by PostgreSQL
  slots        looks at every slot there
  old_primary  waits until the old primary is a standby with SAFE mirrors again

A run that was killed, or whose time is over, is gone on with by the same command:
it finds what was asked in etcd and watches it. It never asks a second time, unless
it is known that Patroni did not take the request up. Once another leads, --to with
a name that does not lead begins the next switchover, and the old primary's return
is not waited for.

Ends with 0 when all of it is done; 3 when it was refused before anything was
asked, by Patroni or by the candidate's gate, or when a slot is not usable
afterwards; 4 when too little is known to ask, or Patroni cannot be reached; 6 when
the time is over, and then says what it waits for and which walsender keeps the old
primary from stopping; 1 when Patroni did something else than it was asked for.`,
		Args: noArgs,
	}
	var p switchover.Policy
	cmd.Flags().StringVar(&p.To, "to", "", "the candidate's `NAME`; one is chosen where none is given")
	cmd.Flags().BoolVar(&p.Yes, "yes", false, "do not ask before Patroni is asked")
	cmd.Flags().BoolVar(&p.DryRun, "dry-run", false, "say what would be done, and ask Patroni for nothing")
	cmd.Flags().DurationVar(&p.Timeout, "timeout", 5*time.Minute, "how long to watch; what was asked goes on without")
	format := outputFlag(cmd, output.Table)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case p.Timeout <= 0:
			return usagef(cmd, "--timeout %s is no time to wait", p.Timeout)
		case cmd.Flags().Changed("to") && p.To == "":
			return usagef(cmd, "--to wants a name")
		}
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		if loaded.Cluster.Source != config.SourcePatroni {
			return exitf(exitUsage, "%s: cluster.source is static, and a switchover is asked of Patroni. Here, stop the primary in order, promote a standby on which \"slotkeeper status\" shows every slot SAFE (pg_ctl promote), and \"slotkeeper verify\" says whether consumers can go on", loaded.File)
		}
		s, err := newSwitch(cmd, loaded.Config, p)
		if err != nil {
			return err
		}
		defer s.close()
		result, err := s.run(cmd.Context())
		if err != nil {
			return err
		}
		return showSwitchover(cmd, *format, result)
	}
	return cmd
}

// switchWork is one run of the command: it gathers facts, asks what to do next, and
// does that one thing.
type switchWork struct {
	cmd    *cobra.Command
	config *config.Config
	policy switchover.Policy
	id     string
	look   *lookout

	step, said string // what was shown last
	saidAt     time.Time
}

// lookEvery is how often facts are held against the steps.
const lookEvery = 100 * time.Millisecond

func newSwitch(cmd *cobra.Command, c *config.Config, p switchover.Policy) (*switchWork, error) {
	p.Rules, p.GiveUp = policy(c), giveUp(c)
	api, err := newREST(c)
	if err != nil {
		return nil, err
	}
	st, err := joinStore(cmd.Context(), c, quietLogger(cmd.ErrOrStderr()))
	if err != nil {
		return nil, storeError(err, c)
	}
	return &switchWork{cmd: cmd, config: c, policy: p, id: uuid.NewString(), look: newLookout(c, st, api)}, nil
}

// giveUp is the command that takes the record away.
func giveUp(c *config.Config) string {
	return fmt.Sprintf("etcdctl del %s/%s/switchover", c.Etcd.Prefix, c.Scope)
}

func (s *switchWork) close() { s.look.close() }

func (s *switchWork) run(ctx context.Context) (switchover.Result, error) {
	if err := s.look.begin(ctx); err != nil {
		return switchover.Result{}, err
	}
	m := switchover.Memory{ID: s.id, Begun: time.Now()}
	for {
		var d switchover.Decision
		d, m = switchover.Next(s.policy, m, s.look.facts())
		s.say(d)
		var err error
		switch d.Action {
		case switchover.Confirm:
			switch {
			case agreed(s.cmd, d.Text):
				s.look.agree(d.Asks)
			case ctx.Err() == nil:
				return s.declined(d), nil
			}
		case switchover.Write:
			err = s.look.write(ctx, d.Record)
		case switchover.Ask:
			err = s.look.ask(ctx, s.id)
		case switchover.Note:
			s.look.amend(ctx, d.Record)
		case switchover.Verify:
			s.look.verify(ctx, d.Leader, d.Record)
		case switchover.Remove:
			if err = s.look.remove(ctx, d.ID); err == nil {
				m = switchover.Memory{ID: s.id, Begun: m.Begun}
			}
		case switchover.End:
			return s.end(ctx, d)
		}
		if err != nil {
			return switchover.Result{}, err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return switchover.Result{}, exitf(exitError, "interrupted while at %s: %s\nThe same command goes on from here.", d.Step, oneLine(d.Text))
		}
	}
}

// end gives the result. The record goes before it, so that it is not gone on with.
func (s *switchWork) end(ctx context.Context, d switchover.Decision) (switchover.Result, error) {
	d.Result.Scope = s.config.Scope
	if d.Drop {
		if err := s.look.remove(ctx, d.ID); err != nil {
			fmt.Fprintf(s.cmd.ErrOrStderr(), "slotkeeper: warning: the record of this switchover stays in etcd, and the next one begins with it: %s\n", output.Printable(oneLine(err.Error())))
		}
	}
	return d.Result, nil
}

func (s *switchWork) declined(d switchover.Decision) switchover.Result {
	return switchover.Result{
		SchemaVersion: switchover.SchemaVersion, Scope: s.config.Scope, Outcome: switchover.OutcomeDeclined,
		Message: "nobody agreed to: " + d.Text, Hint: "--yes does it without asking",
		Gate: []switchover.Answer{}, Slots: []switchover.SlotResult{}, Walsenders: []switchover.Sender{},
	}
}

// numbers in what is waited for change all the time.
var numbers = regexp.MustCompile(`[0-9]+`)

// say shows each step when it begins, and what it waits for now and then. Each line
// is out before what it tells of is done.
func (s *switchWork) say(d switchover.Decision) {
	if d.Text == "" || d.Action == switchover.End || d.Action == switchover.Confirm {
		return
	}
	now, text := time.Now(), d.Step+": "+oneLine(d.Text)
	essence := numbers.ReplaceAllString(text, "")
	if since := now.Sub(s.saidAt); d.Step == s.step && (since < time.Second || since < 15*time.Second && essence == s.said) {
		return
	}
	s.step, s.said, s.saidAt = d.Step, essence, now
	fmt.Fprintf(s.cmd.ErrOrStderr(), "slotkeeper: %s\n", output.Printable(text))
}
