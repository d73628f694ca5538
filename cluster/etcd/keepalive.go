package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// renewer sends keep-alives over a stream of its own, one at a time. The
// client library's loop does not tell when it sent what was answered, and its
// single call opens a stream each time, for which it logs in anew: a password
// hash and a raft entry every few seconds on an etcd that is Patroni's too.
type renewer struct {
	remote etcdserverpb.LeaseClient
	lease  clientv3.LeaseID
	stream etcdserverpb.Lease_LeaseKeepAliveClient // nil: open one
	end    context.CancelFunc                      // of the stream
}

func (c *Client) newRenewer(lease clientv3.LeaseID) *renewer {
	return &renewer{remote: etcdserverpb.NewLeaseClient(c.v3.ActiveConnection()), lease: lease, end: func() {}}
}

// renew asks once and waits up to limit for the answer. After a failure the
// stream is given up: the next one may go to another member, and no late answer
// can be taken for a later question's.
func (r *renewer) renew(ctx context.Context, limit time.Duration) error {
	if r.stream == nil {
		ctx, r.end = context.WithCancel(ctx)
	}
	// By a timer, because a stream's context must outlive this one question.
	late := time.AfterFunc(limit, r.end)
	err := r.ask(ctx)
	if onTime := late.Stop(); !onTime {
		err = context.DeadlineExceeded
	}
	if err != nil {
		r.close()
	}
	return err
}

func (r *renewer) ask(ctx context.Context) error {
	if r.stream == nil {
		stream, err := r.remote.LeaseKeepAlive(ctx)
		if err != nil {
			return rpctypes.Error(err)
		}
		r.stream = stream
	}
	if err := r.stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(r.lease)}); err != nil {
		return rpctypes.Error(err)
	}
	resp, err := r.stream.Recv()
	if err == nil && resp.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	return rpctypes.Error(err)
}

func (r *renewer) close() {
	r.end()
	r.stream = nil
}
