package etcd

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// follower is told of a key, or of a prefix, first as it is and then of each
// change, without a gap. It ends the following by returning true.
type follower struct {
	key    string
	prefix bool
	reset  func(revision int64, kvs []*mvccpb.KeyValue) bool   // everything as it is now
	change func(revision int64, events []*clientv3.Event) bool // never empty
	// again, when not zero, is after what time everything is read again.
	again time.Duration
}

// follow reads, watches from the next revision on, and begins anew whenever the
// watch ends: cancelled, compacted away, cut. It returns nil when the follower
// ends it, else the error of a read or the cause of ctx.
func (c *Client) follow(ctx context.Context, f follower) error {
	retry := newPause()
	for {
		var resp *clientv3.GetResponse
		err := c.do(ctx, "reading "+f.key, func(ctx context.Context) error {
			var err error
			resp, err = c.v3.Get(ctx, f.key, f.ops()...)
			return err
		})
		if err != nil {
			return err
		}
		if f.reset(resp.Header.Revision, resp.Kvs) {
			return nil
		}
		done, progressed, err := c.watch(ctx, f, resp.Header.Revision)
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("watching %s: %w", f.key, context.Cause(ctx))
		}
		if err != nil {
			c.log.Debug("the watch ended, reading again", "key", f.key, "error", err)
		}
		if progressed {
			retry.Reset()
			continue
		}
		wait(ctx, retry.NextBackOff())
	}
}

func (f follower) ops() []clientv3.OpOption {
	if f.prefix {
		return []clientv3.OpOption{clientv3.WithPrefix()}
	}
	return nil
}

// watch is one watch, from the revision after read to its end. progressed says
// that it brought something, or that it ended because it was time to read again.
func (c *Client) watch(ctx context.Context, f follower, read int64) (done, progressed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.again > 0 {
		// By the context: Watch does not even return while no server is there.
		ctx, cancel = context.WithTimeout(ctx, f.again)
		defer cancel()
	}
	ops := append(f.ops(), clientv3.WithRev(read+1))
	for resp := range c.v3.Watch(clientv3.WithRequireLeader(ctx), f.key, ops...) {
		if err := resp.Err(); err != nil {
			return false, progressed, err
		}
		if len(resp.Events) == 0 {
			continue
		}
		progressed = true
		if f.change(resp.Header.Revision, resp.Events) {
			return true, true, nil
		}
	}
	return false, progressed || ctx.Err() != nil, nil
}

// newPause gives growing waits between tries, a second at most.
func newPause() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 50 * time.Millisecond
	b.MaxInterval = time.Second
	return b
}

// wait is false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
