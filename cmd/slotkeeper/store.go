package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
)

// store is the etcd of a configuration: a client, and the embedded server where
// this process runs it.
type store struct {
	client *etcd.Client
	server *etcd.Server // nil where etcd runs elsewhere
}

// openStore connects to etcd. Where the configuration names no endpoints it
// starts the embedded server; another process that runs it already is
// etcd.ErrDataDirInUse.
func openStore(ctx context.Context, c *config.Config, log hclog.Logger) (*store, error) {
	s := &store{}
	endpoints := c.Etcd.Endpoints
	if c.Etcd.Embedded() {
		server, err := etcd.Embed(ctx, etcd.EmbedOptions{DataDir: c.Etcd.DataDir, Logger: log.Named("etcd")})
		if err != nil {
			return nil, err
		}
		s.server, endpoints = server, []string{server.Endpoint()}
	}
	if err := s.connect(ctx, c, endpoints, log); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// joinStore connects to etcd, and to the embedded server of a running daemon;
// it starts nothing. etcd.ErrNotRunning where no embedded server runs.
func joinStore(ctx context.Context, c *config.Config, log hclog.Logger) (*store, error) {
	endpoints := c.Etcd.Endpoints
	if c.Etcd.Embedded() {
		endpoint, err := etcd.ReadEndpoint(c.Etcd.DataDir)
		if err != nil {
			return nil, err
		}
		endpoints = []string{endpoint}
	}
	s := &store{}
	if err := s.connect(ctx, c, endpoints, log); err != nil {
		return nil, err
	}
	return s, nil
}

// leadStore is for commands that lead for a moment: the embedded server of a
// running daemon where there is one, else one of their own.
func leadStore(ctx context.Context, c *config.Config, log hclog.Logger) (*store, error) {
	s, err := hostStore(ctx, c, log)
	if errors.Is(err, etcd.ErrDataDirInUse) {
		return joinStore(ctx, c, log)
	}
	return s, err
}

// hostStore is openStore for those who go on to lead: where they run the server,
// what a killed process that ran it before has left behind is ended.
func hostStore(ctx context.Context, c *config.Config, log hclog.Logger) (*store, error) {
	s, err := openStore(ctx, c, log)
	if err != nil || s.server == nil {
		return s, err
	}
	if err := s.client.EndPredecessor(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *store) connect(ctx context.Context, c *config.Config, endpoints []string, log hclog.Logger) error {
	o := etcd.Options{
		Endpoints: endpoints,
		Prefix:    c.Etcd.Prefix,
		Scope:     c.Scope,
		LeaseTTL:  c.Etcd.LeaseTTL,
		Host:      s.server != nil,
		Logger:    log.Named("etcd"),
	}
	if !c.Etcd.Embedded() {
		o.Username, o.PasswordFile = c.Etcd.Username, c.Etcd.PasswordFile
		o.CAFile, o.CertFile, o.KeyFile = c.Etcd.CAFile, c.Etcd.CertFile, c.Etcd.KeyFile
	}
	client, err := etcd.Open(ctx, o)
	if err != nil {
		return err
	}
	s.client = client
	return nil
}

// Close ends the connections, and the server where it is ours.
func (s *store) Close() error {
	var closers []io.Closer
	if s.client != nil {
		closers = append(closers, s.client)
	}
	if s.server != nil {
		closers = append(closers, s.server)
	}
	var err error
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// storeError gives an error of opening the store its exit code and a hint.
func storeError(err error, c *config.Config) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, etcd.ErrOptions):
		return &ExitError{exitUsage, fmt.Errorf("%s: %w", c.File, err)}
	case errors.Is(err, etcd.ErrNotRunning):
		return &ExitError{exitUnknown, err}
	case errors.Is(err, etcd.ErrDataDirInUse):
		return &ExitError{exitNotLeader, err}
	case errors.Is(err, etcd.ErrUnreachable):
		return &ExitError{exitUnknown, err}
	}
	return err
}
