package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Why a term ended: context.Cause of its Context wraps one of these, or the
// cause of the context that Campaign was given.
var (
	// ErrDeadline: no keep-alive was answered in time, so that another may soon lead.
	ErrDeadline = errors.New("the lease's deadline has passed")
	// ErrLost: etcd says that the lease or the key is gone, or that another has the key.
	ErrLost = errors.New("leadership is lost")
	// ErrResigned: Resign was called.
	ErrResigned = errors.New("resigned")
)

// Term is one time of leading, from winning the leader key to losing it.
type Term struct {
	c      *Client
	epoch  cluster.Epoch
	lease  clientv3.LeaseID
	ttl    time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   sync.WaitGroup
	expire *time.Timer

	mu   sync.Mutex
	sent time.Time // when the last keep-alive that was answered was sent
	last error     // of the keep-alives since then
}

func (c *Client) newTerm(ctx context.Context, epoch cluster.Epoch, lease clientv3.LeaseID, sent time.Time) *Term {
	t := &Term{c: c, epoch: epoch, lease: lease, ttl: c.opts.LeaseTTL, sent: sent}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.expire = time.AfterFunc(time.Until(t.Deadline()), t.checkDeadline)
	context.AfterFunc(t.ctx, func() { t.expire.Stop() })
	c.remember(t)
	t.done.Add(2)
	go func() { defer t.done.Done(); t.keepAlive() }()
	go func() { defer t.done.Done(); t.watchKey() }()
	return t
}

// Epoch is the fencing number: the create revision of the leader key.
func (t *Term) Epoch() cluster.Epoch { return t.epoch }

// Context ends when leadership does; its cause says why.
func (t *Term) Context() context.Context { return t.ctx }

// Deadline is until when nobody else can lead: the time at which the last
// answered keep-alive was sent, plus the TTL, less a fifth of it for clocks that
// run differently and for a batch that is on its way.
func (t *Term) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline()
}

func (t *Term) deadline() time.Time { return t.sent.Add(t.ttl - t.ttl/5) }

// Valid reports whether the term leads at now, which is time.Now() or later.
// Ask before each batch: after the process was stopped, Context ends a moment
// later than its goroutines go on.
func (t *Term) Valid(now time.Time) bool {
	deadline := t.Deadline()
	// The monotonic clock stands still while a machine is suspended, the wall clock
	// does not (Round(0) takes the monotonic reading off). Either one can end a term.
	return t.ctx.Err() == nil && now.Before(deadline) && now.Round(0).Before(deadline.Round(0))
}

// Resign gives the key back at once. It may be called more than once, and after
// the term has ended for another reason; the term's Context has ended, and its
// goroutines with it, when Resign returns.
func (t *Term) Resign(ctx context.Context) error {
	t.cancel(ErrResigned)
	t.done.Wait()
	// The key goes with its lease.
	if err := t.c.revoke(ctx, t.lease); err != nil {
		return fmt.Errorf("resigning from epoch %d: %w", t.epoch, err)
	}
	return nil
}

func (t *Term) lose(why error) {
	t.cancel(fmt.Errorf("epoch %d: %w", t.epoch, why))
}

// checkDeadline runs on a timer. A keep-alive that was answered meanwhile has set it anew.
func (t *Term) checkDeadline() {
	t.mu.Lock()
	left, last := time.Until(t.deadline()), t.last
	t.mu.Unlock()
	switch {
	case left > 0:
		t.expire.Reset(left)
	case last != nil:
		t.lose(fmt.Errorf("%w: %w", ErrDeadline, last))
	default:
		t.lose(ErrDeadline)
	}
}

// keepAlive renews the lease each third of its TTL, until the term ends.
func (t *Term) keepAlive() {
	r := t.c.newRenewer(t.lease)
	defer r.close()
	next := t.ttl / 3
	for wait(t.ctx, next) {
		sent := time.Now()
		err := t.renew(r)
		switch {
		case t.ctx.Err() != nil:
			return
		case err == nil:
			t.renewed(sent)
			next = t.ttl/3 - time.Since(sent)
		case isLeaseGone(err):
			t.lose(fmt.Errorf("%w: etcd does not know the lease any more", ErrLost))
			return
		default:
			t.failed(err)
			next = t.ttl / 50
		}
	}
}

// renew has a limit that leaves time for two more tries before the deadline.
func (t *Term) renew(r *renewer) error {
	note := &note{}
	err := r.renew(context.WithValue(t.ctx, noteKey{}, note), t.ttl/6)
	if isLeaseGone(err) {
		return err
	}
	return t.c.fail(t.ctx, "keeping the lease alive", err, note.text())
}

func (t *Term) renewed(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent, t.last = sent, nil
}

func (t *Term) failed(err error) {
	t.mu.Lock()
	first := t.last == nil
	t.last = err
	t.mu.Unlock()
	if first {
		t.c.log.Warn("the lease was not renewed", "epoch", int64(t.epoch), "deadline", t.Deadline(), "error", err)
	}
}

// watchKey ends the term when the key is deleted or becomes another's.
func (t *Term) watchKey() {
	lost := false
	check := func(kv *mvccpb.KeyValue) bool {
		switch {
		case kv == nil:
			t.lose(fmt.Errorf("%w: the leader key was deleted", ErrLost))
		case kv.CreateRevision != int64(t.epoch) || clientv3.LeaseID(kv.Lease) != t.lease:
			t.lose(fmt.Errorf("%w: %q has the leader key", ErrLost, holderOf(kv).Name))
		default:
			return false
		}
		lost = true
		return true
	}
	f := follower{
		key: t.c.key("leader"), again: t.ttl,
		reset: func(_ int64, kvs []*mvccpb.KeyValue) bool {
			if len(kvs) == 0 {
				return check(nil)
			}
			return check(kvs[0])
		},
		change: func(_ int64, events []*clientv3.Event) bool {
			for _, e := range events {
				if e.Type == clientv3.EventTypeDelete {
					return check(nil)
				}
				if check(e.Kv) {
					return true
				}
			}
			return false
		},
	}
	// Failures to ask are the keep-alive's to judge; being refused ends nothing by itself.
	for !lost && t.ctx.Err() == nil {
		if err := t.c.follow(t.ctx, f); err != nil {
			wait(t.ctx, t.ttl/10)
		}
	}
}

func isLeaseGone(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }
