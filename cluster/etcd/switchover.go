package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxSwitchover bounds the record of a switchover, in bytes.
const maxSwitchover = 64 << 10

// Switchover gives the record of the switchover that is under way, and the
// revision at which it was written; nil and 0 where there is none.
func (c *Client) Switchover(ctx context.Context) (text []byte, revision int64, err error) {
	key := c.key("switchover")
	err = c.do(ctx, "reading the record of a switchover", func(ctx context.Context) error {
		resp, err := c.v3.Get(ctx, key)
		if err == nil && len(resp.Kvs) > 0 {
			text, revision = resp.Kvs[0].Value, resp.Kvs[0].ModRevision
		}
		return err
	})
	return text, revision, err
}

// PutSwitchover writes the record, if it still is as it was at revision; 0: if
// there is none. It needs no leadership: a switchover may be all that is left to do
// when no controller runs. An error leaves open whether it is written.
func (c *Client) PutSwitchover(ctx context.Context, text []byte, revision int64) (written bool, err error) {
	if len(text) > maxSwitchover {
		return false, fmt.Errorf("writing the record of a switchover: it has %d bytes, %d are the most", len(text), maxSwitchover)
	}
	return c.ifSwitchover(ctx, "writing the record of a switchover", revision, clientv3.OpPut(c.key("switchover"), string(text)))
}

// EndSwitchover removes the record, if it still is as it was at revision.
func (c *Client) EndSwitchover(ctx context.Context, revision int64) (removed bool, err error) {
	return c.ifSwitchover(ctx, "removing the record of a switchover", revision, clientv3.OpDelete(c.key("switchover")))
}

func (c *Client) ifSwitchover(ctx context.Context, doing string, revision int64, then clientv3.Op) (done bool, err error) {
	err = c.do(ctx, doing, func(ctx context.Context) error {
		resp, err := c.v3.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(c.key("switchover")), "=", revision)).Then(then).Commit()
		done = err == nil && resp.Succeeded
		return err
	})
	return done, err
}
