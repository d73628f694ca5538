package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = "development"

// protocol is the version of the contract between this program and the
// extension's functions, as node() reports it.
const protocol = 1

type versions struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Protocol int    `json:"extension_protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the program, of the extension's protocol and of Go",
		Args:  noArgs,
	}
	format := outputFlag(cmd, output.Table)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Version: version, Commit: commit(), Protocol: protocol, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
		return output.Write(cmd.OutOrStdout(), *format, output.Result{
			Document: v,
			Header:   []string{"what", "version"},
			Rows: [][]string{
				{"slotkeeper", v.Version},
				{"commit", v.Commit},
				{"extension protocol", fmt.Sprint(v.Protocol)},
				{"go", v.Go},
				{"platform", v.Platform},
			},
		})
	}
	return cmd
}

// commit is what the Go tool wrote into the program, "unknown" without it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
