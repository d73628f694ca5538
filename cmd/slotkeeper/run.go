package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/httpapi"
)

func newRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Runs the controller until SIGTERM or SIGINT. It leads, or waits to lead, by a
lease in etcd; without etcd endpoints it runs an etcd server of its own.
SIGHUP reloads the configuration; one with mistakes leaves the old one in force.

--take-over is for a controller that comes with another etcd than the one by
which these nodes were led: one that was moved, wiped, or restored. It takes the
fences of the old one over, once on each node, instead of reporting
foreign_epoch. Stop the controllers of the old one first: they are refused from
then on, whatever they do.

It ends within 5 seconds of the signal, gives its leadership back, and leaves
all mirrors where they are. A second signal ends it at once.

Under systemd (Type=notify) it is ready after its first complete cycle, or once it
waits to lead, and feeds the watchdog with each one, never by a clock.`,
		Args: noArgs,
	}
	settingFlags(cmd, runKeys...)
	takeOver := cmd.Flags().Bool("take-over", false, "take the nodes over from a controller with another etcd")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		d := &daemon{config: loaded.Config, log: newLogger(loaded.Config, cmd.ErrOrStderr()), takeOver: *takeOver}
		d.reload = func() (*config.Loaded, error) { return load(cmd) }
		return d.run(cmd.Context())
	}
	return cmd
}

// daemon is one `slotkeeper run`.
type daemon struct {
	config *config.Config
	log    hclog.Logger
	reload func() (*config.Loaded, error)

	takeOver bool
	systemd  *notifier
}

// run begins with what can fail at once: the listener. Then etcd, which may be
// waited for; then the loop. The end is in the opposite order.
func (d *daemon) run(ctx context.Context) error {
	server, err := d.listen(ctx)
	if err != nil {
		return err
	}
	d.log.Info("starting", "version", version, "scope", d.config.Scope, "name", d.config.Name)
	front := &frontDoor{}
	d.systemd = newNotifier(os.Getenv, d.log)
	d.systemd.allow(staleAfter(d.config))
	defer context.AfterFunc(ctx, d.systemd.stopping)()
	group, ctx := errgroup.WithContext(ctx)
	if server != nil {
		d.log.Info("listening", "address", server.Addr().String())
		group.Go(func() error { return server.Serve(ctx, front) })
	}
	group.Go(func() error { return d.work(ctx, front, d.address(server)) })
	err = group.Wait()
	if err == nil {
		d.log.Info("stopped; mirrors stay as they are")
	}
	return err
}

func (d *daemon) address(server *httpapi.Server) string {
	if server == nil {
		return ""
	}
	return listenerURL(d.config, server.Addr())
}

// listen binds the listener; nil where the configuration wants none.
func (d *daemon) listen(ctx context.Context) (*httpapi.Server, error) {
	c := d.config
	if c.HTTP.Listen == "" {
		return nil, nil
	}
	o := httpapi.Options{
		Listen:   c.HTTP.Listen,
		CertFile: c.HTTP.TLS.CertFile, KeyFile: c.HTTP.TLS.KeyFile,
		Username:   c.HTTP.Username,
		StaleAfter: staleAfter(c),
		Version:    version,
		Logger:     d.log.Named("http"),
		NotLeading: controller.ErrNotLeading,
	}
	if c.HTTP.PasswordFile != "" {
		password, err := config.ReadPassword("http.password_file", c.HTTP.PasswordFile)
		if err != nil {
			return nil, err
		}
		o.Password = password
	}
	return httpapi.Listen(ctx, o)
}

// staleAfter is how old an observation may be before the loop counts as stuck:
// three times what a healthy one can take, and ten seconds at least.
func staleAfter(c *config.Config) time.Duration {
	return max(10*time.Second, 3*(c.Sync.Interval+c.Sync.CycleTimeout))
}

func (d *daemon) work(ctx context.Context, front *frontDoor, address string) (err error) {
	st, err := d.openStore(ctx, front)
	if err != nil || st == nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	elect := &elector{client: st.client, name: d.config.Name, http: address, takeOver: d.takeOver}
	defer elect.close()
	from, err := openMembers(ctx, d.config, st.client)
	if err != nil {
		return err
	}
	defer from.close()
	deps := loopDeps(d.config, from.Source, elect, d.log)
	deps.Alive = d.systemd.alive
	loop := controller.New(loopConfig(d.config), deps)
	if d.takeOver {
		loop.TakeOver()
	}
	front.open(loop)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return loop.Run(ctx) })
	group.Go(func() error { d.reloads(ctx, loop, from); return nil })
	if st.server != nil {
		group.Go(func() error { return embeddedEnd(ctx, st.server) })
	}
	return group.Wait()
}

// openStore waits for an etcd that does not answer yet: after an outage of
// everything the daemon is often the first to be up. Nil and nil: ctx ended.
func (d *daemon) openStore(ctx context.Context, front *frontDoor) (*store, error) {
	begun := time.Now()
	for said := false; ; said = true {
		st, err := hostStore(ctx, d.config, d.log)
		if err == nil || ctx.Err() != nil {
			if err != nil {
				return nil, nil
			}
			return st, nil
		}
		if !errors.Is(err, etcd.ErrUnreachable) || d.config.Etcd.Embedded() {
			return nil, storeError(err, d.config)
		}
		front.wait(d.config.Scope, begun, err)
		if !said {
			d.log.Warn("waiting for etcd", "error", err)
			d.systemd.status("waiting for etcd")
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(time.Second):
		}
	}
}

func embeddedEnd(ctx context.Context, server *etcd.Server) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("running the embedded etcd: it ended by itself: %w", err)
	}
}

// reloads takes a new configuration at each SIGHUP, or keeps the old one.
func (d *daemon) reloads(ctx context.Context, loop *controller.Controller, from *members) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		loaded, err := d.reload()
		if err == nil {
			err = loaded.CheckFiles()
		}
		if err == nil {
			err = from.replace(loaded.Config)
		}
		if err != nil {
			d.log.Error("reloading the configuration, the old one stays in force", "error", err)
			continue
		}
		for _, key := range needRestart(d.config, loaded.Config) {
			d.log.Warn("a changed setting needs a restart", "key", key)
		}
		d.log.SetLevel(hclog.LevelFromString(loaded.Log.Level))
		d.systemd.allow(staleAfter(loaded.Config))
		loop.Reload(reloadable(d.config, loaded.Config))
	}
}

// reloadable is the new loop configuration with what must not change under a
// running daemon taken from the old one.
func reloadable(old, fresh *config.Config) controller.Config {
	c := *fresh
	c.Scope, c.Name, c.Etcd, c.Postgres = old.Scope, old.Name, old.Etcd, old.Postgres
	return loopConfig(&c)
}

// needRestart names the settings that differ and that only a start reads.
func needRestart(old, fresh *config.Config) []string {
	var keys []string
	for _, s := range []struct {
		key  string
		same bool
	}{
		{"scope", old.Scope == fresh.Scope},
		{"name", old.Name == fresh.Name},
		{"cluster.source", old.Cluster.Source == fresh.Cluster.Source},
		{"cluster.patroni", old.Cluster.Patroni == fresh.Cluster.Patroni},
		{"etcd", fmt.Sprint(old.Etcd) == fmt.Sprint(fresh.Etcd)},
		{"postgres", old.Postgres == fresh.Postgres},
		{"http", old.HTTP == fresh.HTTP},
		{"log.format", old.Log.Format == fresh.Log.Format},
	} {
		if !s.same {
			keys = append(keys, s.key)
		}
	}
	return keys
}
