package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdPasswords are those of the users that an Etcd with Users has. They hold
// "hunter", so that a test can look for them where none may stand.
var etcdPasswords = map[string]string{"root": "hunter2-root", EtcdUser: "hunter2-slotkeeper", PatroniUser: "hunter2-patroni"}

// Client gives a client of these endpoints, all where none is given: as root
// where there are users. The caller closes it.
func (e *Etcd) Client(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		endpoints = e.Endpoints()
	}
	cfg := clientv3.Config{Endpoints: endpoints, DialTimeout: 2 * time.Second, Context: ctx, Logger: zap.NewNop()}
	var err error
	if cfg.TLS, err = e.tlsConfig(); err != nil {
		return nil, fmt.Errorf("connecting to the lab's etcd: %w", err)
	}
	if e.hasUsers() {
		cfg.Username, cfg.Password = "root", etcdPasswords["root"]
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the lab's etcd at %s: %w", strings.Join(endpoints, ", "), err)
	}
	return client, nil
}

// tlsConfig is nil without TLS.
func (e *Etcd) tlsConfig() (*tls.Config, error) {
	if e.authority == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(e.File("ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	own, err := tls.LoadX509KeyPair(e.File("client.pem"), e.File("client.key"))
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, nil
}

func (e *Etcd) hasUsers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.users
}

func (e *Etcd) setUsers(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users = on
}

// ask makes one request, within two seconds.
func (e *Etcd) ask(ctx context.Context, request func(context.Context, *clientv3.Client) error, endpoints ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := e.Client(ctx, endpoints...)
	if err != nil {
		return err
	}
	return errors.Join(request(ctx, client), ignoreCanceled(client.Close()))
}

// ignoreCanceled: a client's Close tells of its own context's end.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// insist makes the request until it succeeds or the waiting ends. For requests
// that may be made twice.
func (e *Etcd) insist(ctx context.Context, what string, request func(context.Context, *clientv3.Client) error, endpoints ...string) error {
	last := errors.New("not asked yet")
	err := poll(ctx, 50*time.Millisecond, what, func() (bool, error) {
		last = e.ask(ctx, request, endpoints...)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// WaitHealthy waits until every running member answers a read that needs the
// majority.
func (e *Etcd) WaitHealthy(ctx context.Context) error {
	for _, m := range e.members {
		if !m.Running() {
			continue
		}
		if err := m.waitHealthy(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *EtcdMember) waitHealthy(ctx context.Context) error {
	err := m.etcd.insist(ctx, "etcd's member "+m.name, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Get(ctx, "health")
		return err
	}, m.URL())
	if err != nil {
		return fmt.Errorf("%w; its last messages:\n%s", err, m.LogTail(10))
	}
	return nil
}

// makeUsers makes the users and has etcd ask for them from then on.
func (e *Etcd) makeUsers(ctx context.Context) error {
	if !e.options.Users {
		return nil
	}
	client, err := e.Client(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // what it was for is done
	for _, user := range []struct{ name, prefix string }{{"root", "/"}, {EtcdUser, "/slotkeeper/"}, {PatroniUser, "/service/"}} {
		_, err1 := client.UserAdd(ctx, user.name, etcdPasswords[user.name])
		_, err2 := client.RoleAdd(ctx, user.name)
		_, err3 := client.RoleGrantPermission(ctx, user.name, user.prefix, clientv3.GetPrefixRangeEnd(user.prefix),
			clientv3.PermissionType(clientv3.PermReadWrite))
		_, err4 := client.UserGrantRole(ctx, user.name, user.name)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return fmt.Errorf("making etcd's user %s: %w", user.name, err)
		}
	}
	if _, err := client.AuthEnable(ctx); err != nil {
		return fmt.Errorf("switching etcd's users on: %w", err)
	}
	e.setUsers(true)
	return nil
}

// Leader waits until the running members agree on a leader, and gives it.
func (e *Etcd) Leader(ctx context.Context) (*EtcdMember, error) {
	var leader *EtcdMember
	err := e.insist(ctx, "etcd's leader", func(ctx context.Context, c *clientv3.Client) error {
		for _, m := range e.members {
			if !m.Running() {
				continue
			}
			s, err := c.Status(ctx, m.URL())
			if err != nil {
				return err
			}
			if s.Leader == s.Header.MemberId {
				leader = m
				return nil
			}
		}
		return errors.New("no running member leads")
	})
	return leader, err
}

// Put writes a key.
func (e *Etcd) Put(ctx context.Context, key, value string) error {
	return e.insist(ctx, "writing "+key, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Put(ctx, key, value)
		return err
	})
}

// Compact forgets all history: a watch that is behind ends.
func (e *Etcd) Compact(ctx context.Context) error {
	return e.insist(ctx, "etcd's compaction", func(ctx context.Context, c *clientv3.Client) error {
		now, err := c.Get(ctx, "health")
		if err != nil {
			return err
		}
		_, err = c.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
		if err != nil && strings.Contains(err.Error(), "has been compacted") {
			return nil // nothing was written since the last time
		}
		return err
	})
}

// Defragment gives every running member's free pages back to the file system;
// meanwhile a member answers nothing.
func (e *Etcd) Defragment(ctx context.Context) error {
	for _, m := range e.members {
		if !m.Running() {
			continue
		}
		err := e.insist(ctx, "etcd's defragmentation", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Defragment(ctx, m.URL())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Snapshot writes what a running member holds into a file, for Restore.
func (e *Etcd) Snapshot(ctx context.Context, file string) error {
	for _, m := range e.members {
		if m.Running() {
			return e.insist(ctx, "etcd's snapshot", func(ctx context.Context, c *clientv3.Client) error {
				return saveSnapshot(ctx, c, file)
			}, m.URL())
		}
	}
	return fmt.Errorf("taking a snapshot of etcd: %w", ErrNotRunning)
}

func saveSnapshot(ctx context.Context, c *clientv3.Client, file string) error {
	from, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was read whole, or that failed
	to, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// RevokeLeaseOf revokes the lease of a key, and with it the key: as if its
// holder had been silent for its whole time to live.
func (e *Etcd) RevokeLeaseOf(ctx context.Context, key string) error {
	return e.insist(ctx, "the lease of "+key, func(ctx context.Context, c *clientv3.Client) error {
		found, err := c.Get(ctx, key)
		if err != nil {
			return err
		}
		if len(found.Kvs) == 0 || found.Kvs[0].Lease == 0 {
			return errors.New("there is no such key with a lease")
		}
		_, err = c.Revoke(ctx, clientv3.LeaseID(found.Kvs[0].Lease))
		return err
	})
}

// Leases gives every lease that is there.
func (e *Etcd) Leases(ctx context.Context) ([]clientv3.LeaseID, error) {
	var all []clientv3.LeaseID
	err := e.insist(ctx, "etcd's leases", func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Leases(ctx)
		if err != nil {
			return err
		}
		all = nil
		for _, l := range got.Leases {
			all = append(all, l.ID)
		}
		return nil
	})
	return all, err
}
