package etcd

import (
	"context"
	"maps"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ReadKeys reads the keys below a folder of somebody else's, such as
// /service/shop: all of one moment, by a linearizable read.
func (c *Client) ReadKeys(ctx context.Context, folder string) (cluster.Keys, error) {
	v := newKeysView(folder)
	err := c.do(ctx, "reading the keys below "+v.prefix, func(ctx context.Context) error {
		resp, err := c.v3.Get(ctx, v.prefix, clientv3.WithPrefix())
		if err == nil {
			v.reset(resp.Header.Revision, resp.Kvs)
		}
		return err
	})
	return v.event(), err
}

// WatchKeys tells a reader of the keys below a folder, as WatchPrefix does of
// slotkeeper's own: first as they are, then after each change, without a gap.
func (c *Client) WatchKeys(ctx context.Context, folder string) <-chan cluster.Keys {
	v := newKeysView(folder)
	return tellOf[cluster.Keys](ctx, c, v.prefix, v)
}

// keysView is the keys below a folder as they are known.
type keysView struct {
	prefix string
	keys   cluster.Keys
}

func newKeysView(folder string) *keysView {
	return &keysView{prefix: strings.TrimRight(folder, "/") + "/"}
}

func (v *keysView) event() cluster.Keys {
	return cluster.Keys{Revision: v.keys.Revision, Values: maps.Clone(v.keys.Values), Modified: maps.Clone(v.keys.Modified), Err: v.keys.Err}
}

func (v *keysView) failed(err error) { v.keys.Err = err }

func (v *keysView) reset(revision int64, kvs []*mvccpb.KeyValue) {
	v.keys = cluster.Keys{Revision: revision, Values: make(map[string][]byte, len(kvs)), Modified: make(map[string]int64, len(kvs))}
	for _, kv := range kvs {
		v.keys.Values[v.name(kv)], v.keys.Modified[v.name(kv)] = kv.Value, kv.ModRevision
	}
}

func (v *keysView) change(revision int64, events []*clientv3.Event) {
	v.keys.Revision, v.keys.Err = revision, nil
	for _, e := range events {
		if e.Type == clientv3.EventTypeDelete {
			delete(v.keys.Values, v.name(e.Kv))
			delete(v.keys.Modified, v.name(e.Kv))
		} else {
			v.keys.Values[v.name(e.Kv)], v.keys.Modified[v.name(e.Kv)] = e.Kv.Value, e.Kv.ModRevision
		}
	}
}

func (v *keysView) name(kv *mvccpb.KeyValue) string {
	return strings.TrimPrefix(string(kv.Key), v.prefix)
}
