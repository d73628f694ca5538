package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// roundPatience bounds one failover of the demo: it takes a fraction of this.
const roundPatience = 3 * time.Minute

func newDemoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Fail over a real cluster on this machine and account for every row",
		Long: `Starts a primary and standbys of PostgreSQL in a temporary folder, with
writers, a consumer and the controller; creates a second slot in the middle of
it; kills the primary, promotes a standby, resumes the consumer from the same
slot; and accounts for every row: committed, delivered, duplicated, lost.

It needs the server's programs and the extension's files (make demo sees to
both), and nothing of it is left afterwards. As root it runs the servers as the
user postgres.

Each round has a seed, by which its writers and its moment of death are chosen;
--seed with a round's number does that round again.

Exit codes: 0 nothing lost and nothing wrong, 1 a row lost, a slot not
mirrored, or an error, 2 something is not installed.`,
		Args:        noArgs,
		Annotations: map[string]string{stopAnnotation: "30s"}, // the lab gives its servers twenty
	}
	d := demo{}
	cmd.Flags().IntVar(&d.rounds, "rounds", 1, "how many failovers, each on servers of its own")
	cmd.Flags().Uint64Var(&d.seed, "seed", 0, "the first round's `NUMBER`; the next rounds count on from it (default: random)")
	cmd.Flags().IntVar(&d.standbys, "standbys", 2, "how many standbys")
	cmd.Flags().BoolVar(&d.keep, "keep", false, "leave the folder with data, logs and configuration")
	cmd.Flags().IntVar(&d.major, "major", lab.DefaultMajor, "PostgreSQL's major version; the default can be set by SLOTKEEPER_MAJOR")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("major") && (d.major < lab.OldestMajor || d.major > lab.NewestMajor) {
			return usagef(cmd, "--major must be %d to %d", lab.OldestMajor, lab.NewestMajor)
		}
		if !cmd.Flags().Changed("major") {
			var err error
			if d.major, err = lab.Major(); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
		}
		if d.rounds < 1 || d.standbys < 1 || d.standbys > 8 {
			return usagef(cmd, "--rounds must be at least 1, and --standbys 1 to 8")
		}
		if !cmd.Flags().Changed("seed") {
			d.seed = uint64(rand.Uint32())
		}
		return d.run(cmd)
	}
	return cmd
}

// demo is one run of the command.
type demo struct {
	rounds, standbys int
	major            int
	seed             uint64
	keep             bool
	binary, bin      string
}

func (d demo) run(cmd *cobra.Command) error {
	var err error
	if d.binary, err = os.Executable(); err != nil {
		return fmt.Errorf("looking for this program's own file: %w", err)
	}
	if d.bin, err = lab.FindPG(d.major); err != nil {
		return &ExitError{Code: exitUsage, Err: err}
	}
	screen := newScreen(cmd.ErrOrStderr())
	var reports []lab.Report
	for round := range d.rounds {
		screen.progress(fmt.Sprintf("round %d of %d, seed %d", round+1, d.rounds, d.seed+uint64(round)))
		report, err := d.round(cmd.Context(), screen, d.seed+uint64(round))
		screen.clear()
		if err != nil {
			return err
		}
		reports = append(reports, report)
		if err := writeRound(cmd.OutOrStdout(), report, d.rounds); err != nil {
			return err
		}
	}
	if d.rounds > 1 {
		if err := writeSummary(cmd.OutOrStdout(), reports); err != nil {
			return err
		}
	}
	for _, report := range reports {
		if !report.OK() {
			return quiet(exitError)
		}
	}
	return nil
}

// round carries out one failover. What kept it from its end is an error of that
// round, and the next one is still worth trying, unless all would end alike.
func (d demo) round(ctx context.Context, screen *screen, seed uint64) (lab.Report, error) {
	bounded, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	report, err := lab.Failover(bounded, lab.Scenario{
		Seed: seed, Standbys: d.standbys, Binary: d.binary, BinDir: d.bin, Keep: d.keep,
		Progress: screen.progress, OnStatus: screen.document,
	})
	switch {
	case ctx.Err() != nil:
		if _, gone := os.Stat(report.Dir); report.Dir != "" && gone == nil && !d.keep {
			return report, exitf(exitError, "interrupted; %s could not be taken away: %w", report.Dir, err)
		}
		return report, exitf(exitError, "interrupted; everything that was started is stopped")
	case errors.Is(err, lab.ErrNoExtension):
		return report, &ExitError{Code: exitUsage, Err: err}
	case err != nil:
		report.Errors = append(report.Errors, err.Error())
	}
	if d.keep {
		screen.progress("the folder is left: " + report.Dir)
	}
	return report, nil
}
