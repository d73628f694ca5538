package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// won is what a campaign in the background gives.
type won struct {
	term *Term
	err  error
}

func inBackground(ctx context.Context, c *Client, name string) <-chan won {
	out := make(chan won, 1)
	go func() {
		term, err := c.Campaign(ctx, name, "http://"+name)
		out <- won{term, err}
	}()
	return out
}

func wins(t *testing.T, w <-chan won) *Term {
	t.Helper()
	select {
	case got := <-w:
		if got.err != nil {
			t.Fatal(got.err)
		}
		t.Cleanup(func() { _ = got.term.Resign(context.Background()) })
		return got.term
	case <-time.After(patience):
		t.Fatal("did not win")
		return nil
	}
}

func TestTheSecondLeadsWhenTheFirstResigns(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		a, b := open(t, options(t, url)), open(t, options(t, url))
		first := campaign(t, a, "a")
		var held *NotLeaderError
		if _, err := b.TryCampaign(t.Context(), "b", ""); !errors.As(err, &held) {
			t.Fatalf("two lead: %v", err)
		}
		if want := (Holder{Name: "a", HTTP: "http://a", Epoch: first.Epoch()}); held.Holder != want {
			t.Errorf("holder is %+v, want %+v", held.Holder, want)
		}
		waiting := inBackground(t.Context(), b, "b")
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := context.Cause(first.Context()); !errors.Is(err, ErrResigned) {
			t.Errorf("the first ended with %v", err)
		}
		if first.Valid(time.Now()) {
			t.Error("the first still counts as leading")
		}
		second := wins(t, waiting)
		if second.Epoch() <= first.Epoch() {
			t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
		}
		leader, err := a.Leader(t.Context())
		if err != nil || leader.V.Name != "b" || leader.V.Epoch != second.Epoch() {
			t.Errorf("the leader is %+v, %v", leader, err)
		}
	})
}

func TestEpochsRiseStrictly(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c := open(t, options(t, url))
		if leader, err := c.Leader(t.Context()); err != nil || leader.OK {
			t.Fatalf("somebody leads already: %v, %v", leader, err)
		}
		last := cluster.Epoch(0)
		for range 5 {
			term := campaign(t, c, "a")
			if term.Epoch() <= last {
				t.Fatalf("epoch %d after %d", term.Epoch(), last)
			}
			last = term.Epoch()
			if err := term.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// C42.
func TestALostKeyEndsTheTerm(t *testing.T) {
	for name, lose := range map[string]func(*Client, *Term) error{
		"lease revoked": func(c *Client, term *Term) error {
			_, err := c.v3.Revoke(context.Background(), term.lease)
			return err
		},
		"key deleted": func(c *Client, _ *Term) error {
			_, err := c.v3.Delete(context.Background(), c.key("leader"))
			return err
		},
		"key overwritten": func(c *Client, _ *Term) error {
			_, err := c.v3.Put(context.Background(), c.key("leader"), `{"name":"thief"}`)
			return err
		},
		"key made again": func(c *Client, _ *Term) error {
			_, err := c.v3.Txn(context.Background()).Then(clientv3.OpDelete(c.key("leader"))).Commit()
			if err == nil {
				_, err = c.v3.Put(context.Background(), c.key("leader"), "not JSON")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string) {
				c := open(t, options(t, url))
				term := campaign(t, c, "a")
				if !term.Valid(time.Now()) {
					t.Fatal("does not lead")
				}
				if err := lose(c, term); err != nil {
					t.Fatal(err)
				}
				if err := ended(t, term.Context()); !errors.Is(err, ErrLost) {
					t.Errorf("ended with %v, want ErrLost", err)
				}
				if term.Valid(time.Now()) {
					t.Error("still counts as leading")
				}
			})
		})
	}
}

func TestTheLeaseOutlivesItsFirstTTL(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		term := campaign(t, open(t, options(t, url)), "a")
		first := term.Deadline()
		eventually(t, "two keep-alives", func() bool { return term.Deadline().After(first.Add(testTTL)) })
		if !term.Valid(time.Now()) {
			t.Error(context.Cause(term.Context()))
		}
	})
}

// C42: the leader hears nothing any more, as when its process was stopped.
func TestTheOldLeaderStopsBeforeANewOneLeads(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		p := newLink(t, url)
		term := campaign(t, open(t, options(t, "http://"+p.Addr())), "a")
		b := open(t, options(t, url))
		type result struct {
			won
			still bool // the first counted as leading when the second had won
		}
		waiting := make(chan result, 1)
		go func() {
			next, err := b.Campaign(t.Context(), "b", "")
			waiting <- result{won{next, err}, term.Valid(time.Now())}
		}()
		p.Stall()
		if err := ended(t, term.Context()); !errors.Is(err, ErrDeadline) {
			t.Errorf("ended with %v, want ErrDeadline", err)
		}
		if time.Now().Before(term.Deadline()) {
			t.Error("ended before its deadline")
		}
		second := <-waiting
		if second.err != nil {
			t.Fatal(second.err)
		}
		if second.still || second.term.Epoch() <= term.Epoch() {
			t.Errorf("two lead, or epoch %d comes after %d", second.term.Epoch(), term.Epoch())
		}
		p.Heal()
		if err := second.term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestValidIsUpToTheDeadline(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	term := &Term{ttl: 10 * time.Second, sent: sent, ctx: t.Context()}
	if got := term.Deadline().Sub(sent); got != 8*time.Second {
		t.Errorf("the deadline is %s after sending, want 8s", got)
	}
	// No timer has run: a process that goes on after a stop asks before the timer does.
	if d := term.Deadline(); !term.Valid(d.Add(-1)) || term.Valid(d) || term.Valid(d.Add(time.Hour)) {
		t.Error("Valid does not end at the deadline")
	}
}

func TestAShortOutageDoesNotEndTheTerm(t *testing.T) {
	t.Parallel()
	p := newLink(t, embedded(t))
	o := options(t, "http://"+p.Addr())
	term := campaign(t, open(t, o), "a")
	lastError := func() error {
		term.mu.Lock()
		defer term.mu.Unlock()
		return term.last
	}
	p.Cut()
	eventually(t, "a failed keep-alive", func() bool { return lastError() != nil })
	p.Heal()
	eventually(t, "a keep-alive that is answered", func() bool { return lastError() == nil })
	if !term.Valid(time.Now()) {
		t.Error(context.Cause(term.Context()))
	}
}

// C42: whoever was cut off past its deadline leads again as soon as it can ask,
// and does not wait for the end of its own lease, which is an hour away here.
func TestALeaderDoesNotWaitOutItsOwnLease(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		p := newLink(t, url)
		o := options(t, "http://"+p.Addr())
		o.LeaseTTL = time.Hour
		c := open(t, o)
		first := campaign(t, c, "a")
		p.Cut()
		first.lose(ErrDeadline)
		waiting := inBackground(t.Context(), c, "a")
		eventually(t, "the outage to be noticed", func() bool { return errors.Is(c.Health(), ErrUnreachable) })
		p.Heal()
		if second := wins(t, waiting); second.Epoch() <= first.Epoch() {
			t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
		}
	})
}

// A term that goes on is not ended by another campaign of the same client.
func TestACampaignLeavesATermThatGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c := open(t, options(t, url))
		first := campaign(t, c, "a")
		waiting, began := inBackground(t.Context(), c, "a"), first.Deadline()
		eventually(t, "two keep-alives", func() bool { return first.Deadline().After(began.Add(testTTL)) })
		if !first.Valid(time.Now()) {
			t.Error(context.Cause(first.Context()))
		}
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		wins(t, waiting)
	})
}

func TestAWaiterGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	c := open(t, options(t, embedded(t)))
	campaign(t, c, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := inBackground(ctx, c, "b")
	enough := errors.New("enough")
	cancel(enough)
	select {
	case got := <-waiting:
		if !errors.Is(got.err, enough) {
			t.Errorf("got %v", got.err)
		}
	case <-time.After(patience):
		t.Fatal("still waits")
	}
}

func TestAWaiterLivesThroughAnOutage(t *testing.T) {
	t.Parallel()
	p := newLink(t, embedded(t))
	a, b := open(t, options(t, embedded(t))), open(t, options(t, "http://"+p.Addr()))
	term := campaign(t, a, "a")
	waiting := inBackground(t.Context(), b, "b")
	p.Cut()
	eventually(t, "the waiter to notice", func() bool { return errors.Is(b.Health(), ErrUnreachable) })
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Heal()
	wins(t, waiting)
}

func TestATermEndsWithItsParent(t *testing.T) {
	t.Parallel()
	c := open(t, options(t, embedded(t)))
	ctx, cancel := context.WithCancel(t.Context())
	term, err := c.Campaign(ctx, "a", "")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := ended(t, term.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	// What SIGTERM does: the key is given back although the context is over.
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if leader, err := c.Leader(t.Context()); err != nil || leader.OK {
		t.Errorf("the key is still there: %v, %v", leader, err)
	}
}

// The key can go between winning it and knowing so.
func TestAKeyThatIsLostAtOnceIsNotWon(t *testing.T) {
	for name, after := range map[string]func(*testing.T, *Client) error{
		"nobody leads": func(*testing.T, *Client) error { return ErrUnreachable },
		"another leads": func(t *testing.T, c *Client) error {
			campaign(t, c, "b")
			return &NotLeaderError{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newLink(t, embedded(t))
			c, direct := open(t, options(t, "http://"+p.Addr())), open(t, options(t, embedded(t)))
			lease, err := c.grant(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p.SwallowReplies()
			taken := make(chan error, 1)
			go func() {
				_, err := c.take(t.Context(), lease, `{"name":"a"}`)
				taken <- err
			}()
			eventually(t, "the key to be written", func() bool {
				leader, err := direct.Leader(t.Context())
				return err == nil && leader.V.Name == "a"
			})
			if err := direct.revoke(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			want := after(t, direct)
			p.Heal()
			err = <-taken
			var held *NotLeaderError
			if !errors.Is(err, want) && !(errors.As(want, &held) && errors.As(err, &held) && held.Holder.Name == "b") {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}
