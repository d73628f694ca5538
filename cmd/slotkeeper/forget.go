package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

func newForgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget NODE",
		Short: "Give up a member that is gone for good",
		Long: `A member that is away keeps catalog rows on every node, so that its mirrors are
still good when it comes back, until protection.max_hold_age has passed. This
gives it up at once: the daemon that leads does it, or, where none leads, this
command. Take it out of the configuration as well. A member that comes back all
the same gets new mirrors.

Ends with 0 when it is given up, 2 when no member is named, 3 when the member
answers or is not known, 4 when etcd, the daemon or the primary does not answer,
and 5 when a controller leads that cannot be asked.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef(cmd, "forget takes the name of one member, got %q", args)
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		if err := forget(cmd, loaded.Config, args[0]); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is given up: nothing waits for it any more\n", args[0])
		for _, m := range loaded.Cluster.Members {
			if m.Name == args[0] {
				fmt.Fprintf(cmd.ErrOrStderr(), "slotkeeper: %s still names it: take it out there, and reload the daemon\n", loaded.File)
			}
		}
		return nil
	}
	return cmd
}

func forget(cmd *cobra.Command, c *config.Config, node string) error {
	ctx, log := cmd.Context(), quietLogger(cmd.ErrOrStderr())
	st, err := leadStore(ctx, c, log)
	if err != nil {
		return storeError(err, c)
	}
	defer st.Close()
	elect := &elector{client: st.client, name: c.Name}
	defer elect.close()
	t, err := elect.TryCampaign(ctx)
	var held *etcd.NotLeaderError
	if errors.As(err, &held) {
		return forgetByLeader(ctx, c, held.Holder, node)
	}
	if err != nil {
		return storeError(err, c)
	}
	from, err := openMembers(ctx, c, st.client)
	if err != nil {
		return err
	}
	defer from.close()
	loop := newController(c, from.Source, elect, log)
	defer loop.Close()
	if err := loop.Begin(ctx, t); err != nil {
		return err
	}
	// The first cycle looks whether it is away, the second gives it up.
	if _, err := loop.Cycle(ctx); err != nil {
		return err
	}
	if s, _ := loop.Status(); s.Primary == nil {
		return exitf(exitUnknown, "there is no primary among the members: nothing can be given up now")
	}
	if err := loop.ForgetNow(node); err != nil {
		return refusedForget(err)
	}
	_, err = loop.Cycle(ctx)
	return err
}

// forgetByLeader asks the daemon that leads: the one of this configuration's
// listener, or the one at the address in the leader key.
func forgetByLeader(ctx context.Context, c *config.Config, holder etcd.Holder, node string) error {
	var tried error
	for _, base := range []string{"", holder.HTTP} {
		if base == "" && tried != nil {
			continue
		}
		client, err := newDaemonClient(c, base)
		if err == nil {
			_, err = client.Forget(ctx, node)
		}
		var answer *daemonError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &answer) && answer.Code == http.StatusUnprocessableEntity:
			return exitf(exitNotSafe, "%s", answer.Text)
		case errors.As(err, &answer) && (answer.Code == http.StatusServiceUnavailable || answer.Code == http.StatusGatewayTimeout):
			return exitf(exitUnknown, "%w", err)
		}
		tried = errors.Join(tried, err)
	}
	return exitf(exitNotLeader, "%s leads, and it cannot be asked:\n%w", holder.Name, tried)
}

func refusedForget(err error) error {
	var refused *plan.NotForgettable
	if errors.As(err, &refused) {
		return &ExitError{exitNotSafe, err}
	}
	return err
}
