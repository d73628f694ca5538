package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Holder is who leads: the value of the leader key and its epoch.
type Holder struct {
	Name  string        `json:"name"`
	HTTP  string        `json:"http"`           // where its HTTP listener answers, "" where it has none
	Host  bool          `json:"host,omitempty"` // it runs the embedded server that holds this key
	Epoch cluster.Epoch `json:"-"`              // the key's create revision
}

func holderOf(kv *mvccpb.KeyValue) Holder {
	h := Holder{}
	if json.Unmarshal(kv.Value, &h) != nil {
		h.Name = "unknown" // not written by us; it holds the key all the same
	}
	h.Epoch = cluster.Epoch(kv.CreateRevision)
	return h
}

// Leader reads who leads; absent where nobody does.
func (c *Client) Leader(ctx context.Context) (cluster.Opt[Holder], error) {
	kv, err := c.leaderKey(ctx)
	if err != nil || kv == nil {
		return cluster.None[Holder](), err
	}
	return cluster.Some(holderOf(kv)), nil
}

func (c *Client) leaderKey(ctx context.Context) (*mvccpb.KeyValue, error) {
	var kv *mvccpb.KeyValue
	err := c.do(ctx, "reading the leader key", func(ctx context.Context) error {
		resp, err := c.v3.Get(ctx, c.key("leader"))
		if err == nil && len(resp.Kvs) > 0 {
			kv = resp.Kvs[0]
		}
		return err
	})
	return kv, err
}

func (c *Client) isLeader(e cluster.Epoch) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(c.key("leader")), "=", int64(e))
}

// Campaign waits until this controller leads. While etcd does not answer it goes
// on trying (Health says so); it gives up when ctx ends, or with ErrRefused. The
// term's context is a child of ctx: it ends with ctx, and with leadership.
func (c *Client) Campaign(ctx context.Context, name, http string) (*Term, error) {
	retry := newPause()
	for {
		err := c.endPast(ctx)
		if err == nil {
			err = c.awaitNoLeader(ctx)
		}
		if err == nil {
			var t *Term
			if t, err = c.TryCampaign(ctx, name, http); err == nil {
				return t, nil
			}
		}
		if ctx.Err() != nil {
			return nil, c.gaveUp(ctx)
		}
		var held *NotLeaderError
		if errors.As(err, &held) {
			retry.Reset()
			continue
		}
		if !errors.Is(err, ErrUnreachable) {
			return nil, err
		}
		c.log.Debug("campaigning", "error", err)
		wait(ctx, retry.NextBackOff())
	}
}

func (c *Client) gaveUp(ctx context.Context) error {
	err := context.Cause(ctx)
	if h := c.Health(); h != nil {
		return fmt.Errorf("campaigning: %w (last: %w)", err, h)
	}
	return fmt.Errorf("campaigning: %w", err)
}

// awaitNoLeader returns when the leader key is seen to be absent.
func (c *Client) awaitNoLeader(ctx context.Context) error {
	seen := ""
	f := follower{
		key: c.key("leader"),
		reset: func(_ int64, kvs []*mvccpb.KeyValue) bool {
			if len(kvs) == 0 {
				return true
			}
			if h := holderOf(kvs[0]); h.Name != seen {
				seen = h.Name
				c.log.Info("waiting for the leader to go", "leader", h.Name, "epoch", int64(h.Epoch))
			}
			return false
		},
		change: func(_ int64, events []*clientv3.Event) bool {
			return events[len(events)-1].Type == clientv3.EventTypeDelete
		},
		// Whatever happens to the watch: a look now and then finds the key gone.
		again: c.opts.LeaseTTL,
	}
	return c.follow(ctx, f)
}

// TryCampaign leads at once or fails with a *NotLeaderError that names who does.
func (c *Client) TryCampaign(ctx context.Context, name, http string) (*Term, error) {
	value, err := json.Marshal(Holder{Name: name, HTTP: http, Host: c.opts.Host})
	if err != nil {
		return nil, fmt.Errorf("writing the leader key: %w", err)
	}
	sent := time.Now()
	lease, err := c.grant(ctx)
	if err != nil {
		return nil, err
	}
	epoch, err := c.take(ctx, lease, string(value))
	if err != nil {
		// The key may have been written although no answer came: it goes with the lease.
		return nil, errors.Join(err, c.revoke(context.WithoutCancel(ctx), lease))
	}
	return c.newTerm(ctx, epoch, lease, sent), nil
}

// endPast gives back what is left of this client's last term, once that has ended:
// else it would wait out its own lease, which after an election in etcd lives
// longer than it was asked for.
func (c *Client) endPast(ctx context.Context) error {
	t := c.past()
	if t == nil || t.ctx.Err() == nil {
		return nil
	}
	if err := t.Resign(ctx); err != nil {
		return err
	}
	c.remember(nil)
	return nil
}

// EndPredecessor ends the leadership that the process left behind which ran this
// embedded server before, as after a kill: else the next start would wait out a
// lease that nobody renews. That process is over: it held data_dir's lock while its
// server ran, which this one holds now. A leader that was only a client of that
// server may live, and keeps its lease. Only for the process that runs the server.
func (c *Client) EndPredecessor(ctx context.Context) error {
	kv, err := c.leaderKey(ctx)
	if err != nil || kv == nil || !c.opts.Host || !holderOf(kv).Host || kv.Lease == 0 {
		return err
	}
	c.log.Info("ending the leadership of the process that ran this etcd before", "epoch", kv.CreateRevision)
	return c.revoke(ctx, clientv3.LeaseID(kv.Lease))
}

func (c *Client) grant(ctx context.Context) (clientv3.LeaseID, error) {
	var id clientv3.LeaseID
	err := c.do(ctx, "getting a lease", func(ctx context.Context) error {
		resp, err := c.v3.Grant(ctx, int64((c.opts.LeaseTTL+time.Second-1)/time.Second))
		if err == nil {
			id = resp.ID
		}
		return err
	})
	return id, err
}

// take writes the leader key if it is absent, and looks again whether it is ours:
// the lease may have run out between the two.
func (c *Client) take(ctx context.Context, lease clientv3.LeaseID, value string) (cluster.Epoch, error) {
	key := c.key("leader")
	var held *mvccpb.KeyValue
	err := c.do(ctx, "writing the leader key", func(ctx context.Context) error {
		resp, err := c.v3.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value, clientv3.WithLease(lease))).
			Else(clientv3.OpGet(key)).Commit()
		if err == nil && !resp.Succeeded {
			held = resp.Responses[0].GetResponseRange().Kvs[0]
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if held != nil {
		return 0, &NotLeaderError{Holder: holderOf(held)}
	}
	kv, err := c.leaderKey(ctx)
	switch {
	case err != nil:
		return 0, err
	case kv == nil:
		return 0, fmt.Errorf("%w: the leader key was gone again at once", ErrUnreachable)
	case clientv3.LeaseID(kv.Lease) != lease:
		return 0, &NotLeaderError{Holder: holderOf(kv)}
	}
	return cluster.Epoch(kv.CreateRevision), nil
}

// revoke ends a lease and its keys at once. A lease that is gone already is what was wanted.
func (c *Client) revoke(ctx context.Context, lease clientv3.LeaseID) error {
	return c.do(ctx, "revoking the lease", func(ctx context.Context) error {
		_, err := c.v3.Revoke(ctx, lease)
		if isLeaseGone(err) {
			return nil
		}
		return err
	})
}
