package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
)

// execute runs one command line and gives its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ctx, stop := withSignals(context.Background(), stderr, patience(root, args))
	defer stop()
	err := root.ExecuteContext(ctx)
	complain(stderr, err)
	return exitCode(err)
}

// complain says what err has to say, each line with the program's name.
func complain(stderr io.Writer, err error) {
	text := message(err)
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(stderr, "slotkeeper: %s\n", output.Printable(line))
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "slotkeeper",
		Short: "Keep logical replication slots usable across a PostgreSQL failover",
		Long: `slotkeeper mirrors the logical replication slots of a PostgreSQL primary onto
its standbys, proves each mirror, and says which would not survive a failover.

Settings come from flags, else from SLOTKEEPER_* environment variables, else
from the configuration file, else they are defaults; "slotkeeper config show
--origin" says which.

Exit codes: 0 ok, 1 error, 2 usage or configuration, 3 not safe or refused,
4 unreachable or unknown, 5 not the leader, 6 timeout or still running.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef(cmd, "a command is missing")
		},
	}
	root.PersistentFlags().String("config", "", "the configuration `FILE` (else SLOTKEEPER_CONFIG, else /etc/slotkeeper/slotkeeper.yaml)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%v", err) })
	root.CompletionOptions.HiddenDefaultCmd = false
	for _, add := range commands {
		root.AddCommand(add())
	}
	root.SuggestionsMinimumDistance = 2
	strict(root)
	return root
}

// strict has the library's own commands refuse what they do not know, where
// they would print help and end with 0.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				about, rest, _ := root.Find(args) // unknown words are the rest, and no error
				return noArgs(about, rest)
			}
		case "completion":
			cmd.Args = noArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return usagef(cmd, "the shell is missing: bash, fish, powershell or zsh")
			}
		}
	}
}

// commands are added to the root in this order.
var commands = []func() *cobra.Command{
	newRunCommand,
	newStatusCommand,
	newWaitCommand,
	newPlanCommand,
	newSyncCommand,
	newVerifyCommand,
	newDoctorCommand,
	newGateCommand,
	newSwitchoverCommand,
	newForgetCommand,
	newUninstallCommand,
	newConfigCommand,
	newVersionCommand,
	newDemoCommand,
}

// usagef is an error of usage, with where to read on.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return exitf(exitUsage, "%s\nSee %q.", fmt.Sprintf(format, args...), cmd.CommandPath()+" --help")
}

// noArgs refuses arguments, and at the root unknown commands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasParent() {
		text := fmt.Sprintf("%q is not a command", args[0])
		near := cmd.SuggestionsFor(args[0])
		// It is among them itself where it stands after "--", or after "help".
		near = slices.DeleteFunc(near, func(name string) bool { return name == args[0] })
		if len(near) > 0 {
			text += ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef(cmd, "%s", text)
	}
	if cmd.HasSubCommands() {
		return usagef(cmd, "%q is not a command of %s", args[0], cmd.CommandPath())
	}
	return usagef(cmd, "%s takes no arguments, got %q", cmd.CommandPath(), args[0])
}
