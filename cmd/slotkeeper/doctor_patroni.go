package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster/patroni"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/doctor"
)

// mendPatroni has Patroni leave slotkeeper's slots alone, after asking, and gives
// what is found then. Where there is nothing to mend, or nobody agrees, it gives
// what was found before.
func mendPatroni(cmd *cobra.Command, c *config.Config, found []doctor.Finding, yes bool) ([]doctor.Finding, error) {
	logical, physical := doctor.Patches(found)
	if !logical && len(physical) == 0 {
		return found, nil
	}
	ctx := cmd.Context()
	view, err := readPatroni(ctx, c)
	if err != nil {
		return nil, err
	}
	api, err := newREST(c)
	if err != nil {
		return nil, err
	}
	member, current, err := askPatroni(ctx, api, view)
	if err != nil {
		return nil, restError(err)
	}
	patch := patroni.Mend(current, logical, physical)
	if patch == nil {
		return found, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing the change of Patroni's configuration: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "slotkeeper: PATCH %s/config %s\n", member.API, output.Printable(string(text)))
	if !yes && !agreed(cmd, "change it?") {
		fmt.Fprintln(cmd.ErrOrStderr(), "slotkeeper: Patroni's configuration is as it was; --yes changes it without asking")
		return found, nil
	}
	if err := api.PatchConfig(ctx, member, patch); err != nil {
		return nil, restError(err)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "slotkeeper: Patroni's configuration is changed")
	again, err := examine(ctx, c)
	if err != nil {
		return nil, err
	}
	return doctor.Diagnose(again), nil
}

// agreed asks on the terminal; where there is none nobody can agree. A signal ends
// the asking: what is read from a terminal cannot be given up.
func agreed(cmd *cobra.Command, question string) bool {
	if in, ok := cmd.InOrStdin().(*os.File); ok && !output.IsTerminal(in) {
		return false
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "slotkeeper: %s [y/N] ", output.Printable(question))
	said := make(chan bool, 1)
	go func() {
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		answer := strings.ToLower(strings.TrimSpace(line))
		said <- err == nil && (answer == "y" || answer == "yes")
	}()
	select {
	case yes := <-said:
		return yes
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return false
	}
}

// newREST is Patroni's REST API as the configuration reaches it.
func newREST(c *config.Config) (*patroni.REST, error) {
	r := c.Cluster.Patroni.REST
	o := patroni.RESTOptions{Username: r.Username, CAFile: r.CAFile, CertFile: r.CertFile, KeyFile: r.KeyFile}
	if r.PasswordFile != "" {
		password, err := config.ReadPassword("cluster.patroni.rest.password_file", r.PasswordFile)
		if err != nil {
			return nil, err
		}
		o.Password = password
	}
	api, err := patroni.NewREST(o)
	if err != nil {
		return nil, exitf(exitUsage, "%s: %w", c.File, err)
	}
	return api, nil
}

// askPatroni finds a member that answers, the leader first, and reads the dynamic
// configuration from it. An answer that is a refusal is the same from all.
func askPatroni(ctx context.Context, api *patroni.REST, view patroni.View) (patroni.Member, map[string]any, error) {
	order := make([]patroni.Member, 0, len(view.Members))
	if leader, ok := view.Member(view.Leader.V); ok {
		order = append(order, leader)
	}
	for _, m := range view.Members {
		if m.Name != view.Leader.V {
			order = append(order, m)
		}
	}
	var tried error
	for _, m := range order {
		current, err := api.Config(ctx, m)
		var refusal *patroni.RESTError
		if err == nil || errors.As(err, &refusal) {
			return m, current, err
		}
		tried = errors.Join(tried, err)
	}
	return patroni.Member{}, nil, tried
}

// restError gives an error of Patroni's API its hint and exit code: nothing was
// changed.
func restError(err error) error {
	var refusal *patroni.RESTError
	if errors.As(err, &refusal) {
		return exitf(exitError, "%s", withHint(refusal.Error(), refusal.Hint()))
	}
	return exitf(exitUnknown, "%w", err)
}
