package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
)

// settingFlags gives the command flags that stand for keys of the configuration.
func settingFlags(cmd *cobra.Command, keys ...string) {
	for _, key := range keys {
		name := config.FlagName(key)
		cmd.Flags().String(name, "", "instead of "+key+" in the configuration")
		if err := cmd.Flags().SetAnnotation(name, keyAnnotation, []string{key}); err != nil {
			panic(err) // the flag was made in the line above
		}
	}
}

const keyAnnotation = "slotkeeper_key"

// load reads the configuration that the command was given.
func load(cmd *cobra.Command) (*config.Loaded, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, fmt.Errorf("reading the flag --config: %w", err)
	}
	flags := map[string]string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if key := f.Annotations[keyAnnotation]; len(key) == 1 && f.Changed {
			flags[key[0]] = f.Value.String()
		}
	})
	loaded, err := config.Load(config.Options{File: file, Flags: flags, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "slotkeeper: warning:", output.Printable(w))
	}
	return loaded, nil
}

// outputFlag gives the command -o.
func outputFlag(cmd *cobra.Command, initial output.Format) *output.Format {
	f := initial
	cmd.Flags().VarP(&f, "output", "o", "how to write the result")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Names(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was made a line above
	}
	return &f
}

// loadWithFiles is load for commands that go on to etcd and the servers: the
// files that the configuration names must be there and safe to use as well.
func loadWithFiles(cmd *cobra.Command) (*config.Loaded, error) {
	loaded, err := load(cmd)
	if err != nil {
		return nil, err
	}
	if err := loaded.CheckFiles(); err != nil {
		return nil, err
	}
	return loaded, nil
}
