package etcd

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Event is the scope as it was at Revision.
type Event struct {
	Revision int64
	Leader   cluster.Opt[Holder]
	Parts    map[string]Part // the ledger; the reader's own copy
	// Err, when not nil, says that etcd does not answer or refuses; then the rest is
	// what was last known. The event after it has a nil Err.
	Err error
}

// WatchPrefix tells a reader of the leader and the ledger: first as they are,
// then after each change, without a gap, also across compactions and outages. A
// reader that is slow gets the newest state only, never a missed one. Everything
// is read again each LeaseTTL, so an event comes at least that often: a watch
// alone would be silent about an etcd that is gone. The channel is closed when
// ctx ends.
func (c *Client) WatchPrefix(ctx context.Context) <-chan Event {
	return tellOf[Event](ctx, c, c.key(""), &scopeView{root: c.key("")})
}

// state is what a reader of some keys is told.
type state[E any] interface {
	reset(revision int64, kvs []*mvccpb.KeyValue)
	change(revision int64, events []*clientv3.Event)
	failed(err error)
	event() E
}

// tellOf follows the keys below a prefix and tells of each state.
func tellOf[E any](ctx context.Context, c *Client, prefix string, s state[E]) <-chan E {
	out := make(chan E)
	news := make(chan E, 1)
	go func() {
		defer close(news)
		collect(ctx, c, prefix, s, news)
	}()
	go func() {
		defer close(out)
		hand(news, out)
	}()
	return out
}

// collect puts each state into news, in place of one that was not taken.
func collect[E any](ctx context.Context, c *Client, prefix string, s state[E], news chan E) {
	failing := false
	tell := func() bool {
		select {
		case <-news:
		default:
		}
		news <- s.event()
		return false
	}
	f := follower{
		key: prefix, prefix: true, again: c.opts.LeaseTTL,
		reset:  func(rev int64, kvs []*mvccpb.KeyValue) bool { failing = false; s.reset(rev, kvs); return tell() },
		change: func(rev int64, evs []*clientv3.Event) bool { failing = false; s.change(rev, evs); return tell() },
	}
	retry := newPause()
	for ctx.Err() == nil {
		err := c.follow(ctx, f)
		if ctx.Err() != nil {
			return
		}
		if !failing {
			retry.Reset()
		}
		failing = true
		s.failed(err)
		tell()
		pause := retry.NextBackOff()
		if !errors.Is(err, ErrUnreachable) {
			pause = time.Second
		}
		wait(ctx, pause)
	}
}

// hand passes events on, always the newest one that there is.
func hand[E any](news <-chan E, out chan<- E) {
	for e := range news {
		for sent := false; !sent; {
			select {
			case out <- e:
				sent = true
			case newer, ok := <-news:
				if !ok {
					return
				}
				e = newer
			}
		}
	}
}

// scopeView is the scope's keys as they are known.
type scopeView struct {
	root     string
	revision int64
	leader   cluster.Opt[Holder]
	parts    map[string]Part
	err      error
}

func (w *scopeView) event() Event {
	return Event{Revision: w.revision, Leader: w.leader, Parts: maps.Clone(w.parts), Err: w.err}
}

func (w *scopeView) failed(err error) { w.err = err }

func (w *scopeView) reset(revision int64, kvs []*mvccpb.KeyValue) {
	*w = scopeView{root: w.root, revision: revision, parts: map[string]Part{}}
	for _, kv := range kvs {
		w.put(kv)
	}
}

func (w *scopeView) change(revision int64, events []*clientv3.Event) {
	w.revision, w.err = revision, nil
	for _, e := range events {
		if e.Type == clientv3.EventTypeDelete {
			w.delete(string(e.Kv.Key))
		} else {
			w.put(e.Kv)
		}
	}
}

func (w *scopeView) put(kv *mvccpb.KeyValue) {
	name := strings.TrimPrefix(string(kv.Key), w.root)
	if name == "leader" {
		w.leader = cluster.Some(holderOf(kv))
	} else if part, ok := strings.CutPrefix(name, "ledger/"); ok {
		w.parts[part] = partOf(kv)
	}
}

func (w *scopeView) delete(key string) {
	name := strings.TrimPrefix(key, w.root)
	if name == "leader" {
		w.leader = cluster.None[Holder]()
	} else if part, ok := strings.CutPrefix(name, "ledger/"); ok {
		delete(w.parts, part)
	}
}
