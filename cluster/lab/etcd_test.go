package lab

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func startedEtcd(t *testing.T, options EtcdOptions) (context.Context, *Etcd) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	e, err := StartEtcd(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range e.Members() {
				t.Logf("etcd's member %s:\n%s", m.Name(), m.LogTail(20))
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return ctx, e
}

// etcdHas reads a key from a member, linearizably.
func etcdHas(t *testing.T, ctx context.Context, e *Etcd, key string, endpoints ...string) string {
	t.Helper()
	value := ""
	ok(t, e.insist(ctx, "reading "+key, func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Get(ctx, key)
		if err == nil && len(got.Kvs) > 0 {
			value = string(got.Kvs[0].Value)
		}
		return err
	}, endpoints...))
	return value
}

func TestEtcdOfThreeUnderFaults(t *testing.T) {
	t.Parallel()
	ctx, e := startedEtcd(t, EtcdOptions{TLS: true, Users: true, TokenTTL: 5 * time.Second, Quota: 32 << 20})
	ok(t, e.Put(ctx, "/slotkeeper/k", "1"))

	leader, err := e.Leader(ctx)
	ok(t, err)
	leader.Isolate()
	ok(t, e.Put(ctx, "/slotkeeper/k", "2")) // the two others go on
	err = e.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Get(ctx, "/slotkeeper/k")
		return err
	}, leader.URL())
	if err == nil {
		t.Error("the isolated member answers a read that needs the majority")
	}
	leader.Rejoin()
	if got := etcdHas(t, ctx, e, "/slotkeeper/k", leader.URL()); got != "2" {
		t.Errorf("back among the others the member reads %q", got)
	}

	leader, err = e.Leader(ctx)
	ok(t, err)
	ok(t, leader.Freeze())
	ok(t, e.Put(ctx, "/slotkeeper/k", "3"))
	ok(t, leader.Thaw())
	ok(t, leader.Kill(ctx))
	ok(t, e.Put(ctx, "/slotkeeper/k", "4"))
	ok(t, e.KillAll(ctx))
	ok(t, e.StartAll(ctx))
	ok(t, e.Compact(ctx))
	ok(t, e.Compact(ctx))
	ok(t, e.Defragment(ctx))
	for _, m := range e.Members() {
		if got := etcdHas(t, ctx, e, "/slotkeeper/k", m.URL()); got != "4" {
			t.Errorf("%s holds %q after all were killed", m.Name(), got)
		}
	}
}

func TestEtcdWipedAndRestored(t *testing.T) {
	t.Parallel()
	ctx, e := startedEtcd(t, EtcdOptions{Users: true})
	ok(t, e.Put(ctx, "/slotkeeper/k", "old"))
	file := filepath.Join(t.TempDir(), "snapshot")
	ok(t, e.Snapshot(ctx, file))
	ok(t, e.Put(ctx, "/slotkeeper/k", "new"))
	ok(t, e.Restore(ctx, file))
	if got := etcdHas(t, ctx, e, "/slotkeeper/k"); got != "old" {
		t.Errorf("restored, it holds %q", got)
	}
	ok(t, e.Wipe(ctx))
	if got := etcdHas(t, ctx, e, "/slotkeeper/k"); got != "" {
		t.Errorf("wiped, it holds %q", got)
	}
}

func TestEtcdLeaseRevoked(t *testing.T) {
	t.Parallel()
	ctx, e := startedEtcd(t, EtcdOptions{Members: 1})
	ok(t, e.insist(ctx, "a key with a lease", func(ctx context.Context, c *clientv3.Client) error {
		lease, err := c.Grant(ctx, 3600)
		if err != nil {
			return err
		}
		_, err = c.Put(ctx, "leader", "x", clientv3.WithLease(lease.ID))
		return err
	}))
	ok(t, e.RevokeLeaseOf(ctx, "leader"))
	if got := etcdHas(t, ctx, e, "leader"); got != "" {
		t.Errorf("its lease is revoked, and the key holds %q", got)
	}
}
