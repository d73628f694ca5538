package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef(cmd, "a command is missing: show")
		},
	}
	cmd.AddCommand(newConfigShowCommand())
	return cmd
}

func newConfigShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every setting in force, without secrets",
		Long: `Reads and checks the configuration as every other command does, and shows the
settings in force. As YAML the output is a complete configuration file.
Passwords never stand in a configuration; URLs that may hold a secret are
shown by scheme and host only.`,
		Args: noArgs,
	}
	format := outputFlag(cmd, output.YAML)
	origin := cmd.Flags().Bool("origin", false, "show where each setting comes from: flag, environment, file or default")
	doc := cmd.Flags().Bool("doc", false, "show what each setting means")
	settingFlags(cmd, runKeys...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := load(cmd)
		if err != nil {
			return err
		}
		return showConfig(cmd, loaded, *format, *origin, *doc)
	}
	return cmd
}

// runKeys are the settings that have a flag: what one changes for a single run.
var runKeys = []string{"name", "http.listen", "log.level", "log.format"}

func showConfig(cmd *cobra.Command, loaded *config.Loaded, format output.Format, origin, doc bool) error {
	w := cmd.OutOrStdout()
	if format == output.YAML {
		b, err := loaded.YAML(origin, doc)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		return nil
	}
	settings := loaded.Settings()
	r := output.Result{Document: loaded.Tree(), Header: []string{"key", "value"}}
	if origin {
		r.Header = append(r.Header, "origin")
	}
	if doc {
		r.Header = append(r.Header, "doc")
	}
	for i, s := range settings {
		row := []string{s.Key, s.Text()}
		if origin {
			row = append(row, s.Origin)
		}
		if doc {
			row = append(row, s.Doc)
		} else {
			settings[i].Doc = ""
		}
		r.Rows = append(r.Rows, row)
	}
	if origin || doc {
		r.Document = settings
	}
	return output.Write(w, format, r)
}
