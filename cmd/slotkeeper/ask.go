package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// askTimeout bounds one look at the status: a daemon answers in milliseconds.
const askTimeout = 5 * time.Second

// fetchStatus asks the daemon, and where it does not answer the ledger. The
// error has its exit code.
func fetchStatus(ctx context.Context, c *config.Config) (status.Status, error) {
	return askInTurn(ctx, askTimeout, c, statusFromDaemon, statusFromLedger)
}

// asker is one of those who know the status.
type asker func(context.Context, *config.Config) (status.Status, error)

// askInTurn gives each of the two its own time: a daemon that hangs takes none of
// the ledger's.
func askInTurn(ctx context.Context, each time.Duration, c *config.Config, daemon, ledger asker) (status.Status, error) {
	ask := func(who asker) (status.Status, error) {
		ctx, cancel := context.WithTimeout(ctx, each)
		defer cancel()
		return who(ctx, c)
	}
	s, err := ask(daemon)
	if err == nil || config.IsError(err) {
		return checkScope(s, c, err)
	}
	s, lerr := ask(ledger)
	if lerr == nil {
		return checkScope(s, c, nil)
	}
	return status.Status{}, exitf(exitUnknown, "%w\nand the ledger does not help: %w", err, lerr)
}

func statusFromDaemon(ctx context.Context, c *config.Config) (status.Status, error) {
	client, err := newDaemonClient(c, "")
	if err != nil {
		return status.Status{}, err
	}
	return client.Status(ctx)
}

// checkScope refuses the status of another cluster: a port is quickly mistaken.
func checkScope(s status.Status, c *config.Config, err error) (status.Status, error) {
	if err == nil && s.Scope != c.Scope {
		return s, exitf(exitUnknown, "the daemon at %s watches scope %q, the configuration names %q: correct http.listen or scope", c.HTTP.Listen, s.Scope, c.Scope)
	}
	return s, err
}

// ofLedger refuses a ledger that names another scope than its keys do.
func ofLedger(s status.Status, c *config.Config) error {
	if s.Scope != c.Scope {
		return fmt.Errorf("the ledger below %s/%s in etcd names scope %q: another program has written there; "+
			"start slotkeeper run, which writes it anew", c.Etcd.Prefix, c.Scope, s.Scope)
	}
	return nil
}

var errEmptyLedger = errors.New("nothing was written there yet")

func statusFromLedger(ctx context.Context, c *config.Config) (status.Status, error) {
	st, err := joinStore(ctx, c, hclog.NewNullLogger())
	if err != nil {
		return status.Status{}, err
	}
	defer st.Close()
	parts, err := loadLedger(ctx, st.client.Ledger())
	if err != nil {
		return status.Status{}, err
	}
	if len(parts) == 0 {
		return status.Status{}, errEmptyLedger
	}
	s, err := status.FromLedger(parts)
	if err == nil {
		err = ofLedger(s, c)
	}
	if err != nil {
		return s, err
	}
	holder, err := st.client.Leader(ctx)
	if err != nil {
		return s, err
	}
	s.Leader = status.Leader{Name: holder.V.Name, Epoch: holder.V.Epoch}
	return s, nil
}

// leaderOf reads who leads from etcd.
func leaderOf(ctx context.Context, c *config.Config) (etcd.Holder, error) {
	st, err := joinStore(ctx, c, hclog.NewNullLogger())
	if err != nil {
		return etcd.Holder{}, err
	}
	defer st.Close()
	holder, err := st.client.Leader(ctx)
	return holder.V, err
}

// positionsEvery is how old the ledger's positions may be while all is well.
const positionsEvery = 30 * time.Second

// freshness says why a document is too old to be believed, "" where it is not.
func freshness(s status.Status, c *config.Config, now time.Time) string {
	limit := staleAfter(c)
	if s.Source == "ledger" {
		limit += positionsEvery
	}
	switch age := now.Sub(s.ObservedAt); {
	case s.ObservedAt.IsZero():
		return "no observation is recorded"
	case age > limit:
		return fmt.Sprintf("the last observation is %s old", age.Round(time.Second))
	case s.Leader.Name == "":
		return "no controller leads that this one knows of"
	}
	return ""
}
