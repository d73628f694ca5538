package main

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cluster/patroni"
	"github.com/slotkeeper/slotkeeper/cluster/static"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller"
)

// members is where the members come from, for as long as a command works.
type members struct {
	controller.Source
	replace func(*config.Config) error // takes those of a reloaded configuration
	close   func()
}

// openMembers follows the topology that the configuration names.
func openMembers(ctx context.Context, c *config.Config, client *etcd.Client) (*members, error) {
	if c.Cluster.Source == config.SourcePatroni {
		source := patroni.Follow(ctx, func(ctx context.Context) <-chan cluster.Keys {
			return client.WatchKeys(ctx, patroniFolder(c))
		})
		return &members{Source: source, replace: func(*config.Config) error { return nil }, close: source.Close}, nil
	}
	source, err := staticMembers(c)
	if err != nil {
		return nil, err
	}
	return &members{
		Source:  source,
		replace: func(c *config.Config) error { return source.Replace(c.Cluster.Members) },
		close:   func() {},
	}, nil
}

func staticMembers(c *config.Config) (*static.Source, error) {
	source, err := static.New(c.Cluster.Members)
	if err != nil {
		return nil, exitf(exitUsage, "%s: cluster.members: %w", c.File, err)
	}
	return source, nil
}

func patroniFolder(c *config.Config) string {
	return patroni.Folder(c.Cluster.Patroni.Namespace, c.Scope)
}

// readTopology reads it once, for commands that look once.
func readTopology(ctx context.Context, c *config.Config) (cluster.Topology, error) {
	if c.Cluster.Source == config.SourcePatroni {
		view, err := readPatroni(ctx, c)
		return view.Topology(), err
	}
	source, err := staticMembers(c)
	if err != nil {
		return cluster.Topology{}, err
	}
	return source.Topology(ctx)
}

// readPatroni reads Patroni's keys once. No members are an error: then scope or
// namespace are not Patroni's.
func readPatroni(ctx context.Context, c *config.Config) (patroni.View, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	st, err := joinStore(ctx, c, hclog.NewNullLogger())
	if err != nil {
		return patroni.View{}, storeError(err, c)
	}
	defer st.Close()
	keys, err := st.client.ReadKeys(ctx, patroniFolder(c))
	if err != nil {
		return patroni.View{}, storeError(err, c)
	}
	view := patroni.Parse(keys)
	if len(view.Members) == 0 {
		return view, exitf(exitUnknown, "Patroni has no members below %s in etcd: are scope and cluster.patroni.namespace those of Patroni's own configuration?", patroniFolder(c))
	}
	return view, nil
}

// seen is a topology that was read once, as a source.
type seen cluster.Topology

func (s seen) Topology(context.Context) (cluster.Topology, error) { return cluster.Topology(s), nil }
