package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// until takes events up to one that is as wanted.
func until(t *testing.T, events <-chan Event, what string, ok func(Event) bool) Event {
	t.Helper()
	end := time.After(patience)
	for {
		select {
		case e, more := <-events:
			if !more {
				t.Fatalf("closed before %s", what)
			}
			if ok(e) {
				return e
			}
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestAReaderSeesTheLeaderAndTheLedger(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c, reader := open(t, options(t, url)), open(t, options(t, url))
		ctx, cancel := context.WithCancel(t.Context())
		events := reader.WatchPrefix(ctx)
		if e := <-events; e.Err != nil || e.Leader.OK || len(e.Parts) != 0 || e.Revision == 0 {
			t.Fatalf("the first event is %+v", e)
		}
		term, l := campaign(t, c, "a"), c.Ledger()
		until(t, events, "the leader", func(e Event) bool { return e.Leader.V.Name == "a" && e.Leader.V.Epoch == term.Epoch() })
		write(t, l, term, PartCluster, "one")
		until(t, events, "the part", func(e Event) bool { return string(e.Parts[PartCluster].Value) == "one" })
		if err := l.Delete(t.Context(), term, PartCluster); err != nil {
			t.Fatal(err)
		}
		until(t, events, "no part", func(e Event) bool { return len(e.Parts) == 0 })
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, events, "no leader", func(e Event) bool { return !e.Leader.OK })
		cancel()
		for range events { // it is closed
		}
	})
}

func TestASlowReaderGetsTheNewestState(t *testing.T) {
	t.Parallel()
	c := open(t, options(t, embedded(t)))
	events := c.WatchPrefix(t.Context())
	<-events
	term, l := campaign(t, c, "a"), c.Ledger()
	for i := range 20 { // nobody takes an event meanwhile
		write(t, l, term, PartCluster, fmt.Sprint(i))
	}
	until(t, events, "the last value", func(e Event) bool { return string(e.Parts[PartCluster].Value) == "19" })
}

func TestAReaderIsToldOfAnOutageAndOfWhatWasMissed(t *testing.T) {
	t.Parallel()
	p := newLink(t, embedded(t))
	c, reader := open(t, options(t, embedded(t))), open(t, options(t, "http://"+p.Addr()))
	term, l := campaign(t, c, "a"), c.Ledger()
	write(t, l, term, PartSlots(0), "old")
	events := reader.WatchPrefix(t.Context())
	<-events
	p.Cut()
	e := until(t, events, "the outage", func(e Event) bool { return e.Err != nil })
	if !errors.Is(e.Err, ErrUnreachable) || string(e.Parts[PartSlots(0)].Value) != "old" {
		t.Errorf("the outage is told as %+v", e)
	}
	if err := l.Delete(t.Context(), term, PartSlots(0)); err != nil {
		t.Fatal(err)
	}
	write(t, l, term, PartCluster, "new")
	p.Heal()
	e = until(t, events, "the end of the outage", func(e Event) bool { return e.Err == nil })
	if string(e.Parts[PartCluster].Value) != "new" || len(e.Parts) != 1 {
		t.Errorf("the state after the outage is %+v", e)
	}
}

// C42: what the watch would go on from is compacted away while it is cut off.
func TestAWatchAcrossACompactionMissesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		p := newLink(t, url)
		c, reader := open(t, options(t, url)), open(t, options(t, "http://"+p.Addr()))
		type state struct {
			value string
			reset bool
		}
		states := make(chan state, 100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- reader.follow(ctx, follower{
				key: c.key("x"),
				reset: func(_ int64, kvs []*mvccpb.KeyValue) bool {
					s := state{reset: true}
					if len(kvs) > 0 {
						s.value = string(kvs[0].Value)
					}
					states <- s
					return false
				},
				change: func(_ int64, events []*clientv3.Event) bool {
					states <- state{value: string(events[len(events)-1].Kv.Value)}
					return false
				},
			})
		}()
		if first := <-states; first != (state{reset: true}) {
			t.Fatalf("the first state is %+v", first)
		}
		put := func(value string) int64 {
			resp, err := c.v3.Put(t.Context(), c.key("x"), value)
			if err != nil {
				t.Fatal(err)
			}
			return resp.Header.Revision
		}
		put("seen") // proves that the watch is up
		if s := <-states; s != (state{value: "seen"}) {
			t.Fatalf("the second state is %+v", s)
		}
		p.Cut()
		put("gone")
		if _, err := c.v3.Compact(t.Context(), put("final")); err != nil {
			t.Fatal(err)
		}
		p.Heal()
		if s := <-states; s != (state{value: "final", reset: true}) {
			t.Errorf("after the compaction the state is %+v", s)
		}
		put("after")
		if s := <-states; s != (state{value: "after"}) {
			t.Errorf("the watch went on with %+v", s)
		}
		cancel()
		if err := <-done; err == nil || !strings.Contains(err.Error(), "x") {
			t.Errorf("it ended with %v", err)
		}
	})
}
