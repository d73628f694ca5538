package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

func load(t *testing.T, l *Ledger) map[string]string {
	t.Helper()
	parts, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, p := range parts {
		out[name] = string(p.Value)
	}
	return out
}

func write(t *testing.T, l *Ledger, term *Term, part, value string) {
	t.Helper()
	if err := l.Save(t.Context(), term, map[string][]byte{part: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

func TestTheLedgerHoldsWhatWasWritten(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c := open(t, options(t, url))
		term, l := campaign(t, c, "a"), c.Ledger()
		write(t, l, term, PartCluster, "one")
		write(t, l, term, PartSlots(7), "")
		write(t, l, term, PartPositions(0), "p")
		write(t, l, term, PartCluster, "two")
		want := map[string]string{"cluster": "two", "slots/07": "", "positions/00": "p"}
		if diff := cmp.Diff(want, load(t, c.Ledger())); diff != "" {
			t.Error(diff)
		}
		if err := l.Delete(t.Context(), term, PartSlots(7)); err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), term, PartSlots(8)); err != nil {
			t.Errorf("deleting what is not there: %v", err)
		}
		delete(want, "slots/07")
		if diff := cmp.Diff(want, load(t, c.Ledger())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnUnchangedPartIsNotWritten(t *testing.T) {
	t.Parallel()
	c := open(t, options(t, embedded(t)))
	term, l := campaign(t, c, "a"), c.Ledger()
	write(t, l, term, PartCluster, "same")
	before, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, term, PartCluster, "same")
	after, err := c.Ledger().Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("it was written: %s", diff)
	}
}

func TestAPartThatMovedIsNotOverwritten(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c := open(t, options(t, url))
		term, l, other := campaign(t, c, "a"), c.Ledger(), c.Ledger()
		write(t, other, term, PartCluster, "other")
		if err := l.Save(t.Context(), term, map[string][]byte{PartCluster: []byte("mine")}); !errors.Is(err, ErrConflict) {
			t.Fatalf("a part never seen was overwritten: %v", err)
		}
		load(t, l)
		write(t, other, term, PartCluster, "other again")
		if err := l.Save(t.Context(), term, map[string][]byte{PartCluster: []byte("mine")}); !errors.Is(err, ErrConflict) {
			t.Fatalf("a part that moved was overwritten: %v", err)
		}
		if err := l.Delete(t.Context(), term, PartCluster); !errors.Is(err, ErrConflict) {
			t.Fatalf("a part that moved was deleted: %v", err)
		}
		if got := load(t, l)[PartCluster]; got != "other again" {
			t.Errorf("the part is %q", got)
		}
		write(t, l, term, PartCluster, "mine")
	})
}

// sleeper is a leader that does not know yet that another leads.
func sleeper(c *Client, term *Term) *Term {
	return &Term{c: c, epoch: term.epoch, lease: term.lease, ttl: time.Hour, sent: time.Now(), ctx: context.Background()}
}

// C42: no write after the lease is gone, whatever the old leader believes.
func TestAStaleLeaderWritesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		a, b := open(t, options(t, url)), open(t, options(t, url))
		first, l := campaign(t, a, "a"), a.Ledger()
		write(t, l, first, PartCluster, "first")
		stale := sleeper(a, first)
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"nobody leads", "another leads"} {
			if when == "another leads" {
				campaign(t, b, "b")
			}
			if !stale.Valid(time.Now()) {
				t.Fatal("the test's own leader knows")
			}
			if err := l.Save(t.Context(), stale, map[string][]byte{PartCluster: []byte("stale")}); !errors.Is(err, ErrFenced) {
				t.Errorf("%s: writing gives %v, want ErrFenced", when, err)
			}
			if err := l.Delete(t.Context(), stale, PartCluster); !errors.Is(err, ErrFenced) {
				t.Errorf("%s: deleting gives %v, want ErrFenced", when, err)
			}
			if err := a.DeleteAll(t.Context(), stale); !errors.Is(err, ErrFenced) {
				t.Errorf("%s: deleting all gives %v, want ErrFenced", when, err)
			}
		}
		if got := load(t, b.Ledger())[PartCluster]; got != "first" {
			t.Errorf("the part is %q", got)
		}
	})
}

func TestATermPastItsDeadlineAsksNobody(t *testing.T) {
	t.Parallel()
	c := open(t, options(t, embedded(t)))
	term, l := campaign(t, c, "a"), c.Ledger()
	late := sleeper(c, term)
	late.sent = time.Now().Add(-time.Hour)
	if err := l.Save(t.Context(), late, map[string][]byte{PartCluster: []byte("x")}); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v, want ErrFenced: the key is still ours in etcd", err)
	}
	if got := load(t, l); len(got) != 0 {
		t.Errorf("written: %v", got)
	}
}

func TestAPartHasALimitAndAName(t *testing.T) {
	t.Parallel()
	c := open(t, options(t, embedded(t)))
	term, l := campaign(t, c, "a"), c.Ledger()
	full := bytes.Repeat([]byte("x"), MaxPart)
	if err := l.Save(t.Context(), term, map[string][]byte{PartSlots(0): full}); err != nil {
		t.Errorf("64 KB are refused: %v", err)
	}
	if err := l.Save(t.Context(), term, map[string][]byte{PartSlots(1): append(full, 'x')}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	for _, part := range []string{"", "leader", "slots", "slots/x", "slots/1/2", "../leader"} {
		if err := l.Save(t.Context(), term, map[string][]byte{part: []byte("x")}); err == nil {
			t.Errorf("part %q was written", part)
		}
	}
	if got := load(t, c.Ledger()); len(got) != 1 {
		t.Errorf("there are %d parts, want 1", len(got))
	}
}

// A write without an answer may have been done. The next one must neither fail
// as a conflict with oneself nor be skipped as unchanged.
func TestAWriteWithoutAnAnswerIsLookedAtAgain(t *testing.T) {
	for name, next := range map[string]string{"another value": "third", "the value before": "first", "the same value": "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newLink(t, embedded(t))
			o := options(t, "http://"+p.Addr())
			o.RequestTimeout, o.LeaseTTL = 500*time.Millisecond, time.Minute
			c, direct := open(t, o), open(t, options(t, embedded(t)))
			term, l := campaign(t, c, "a"), c.Ledger()
			write(t, l, term, PartCluster, "first")
			p.SwallowReplies()
			if err := l.Save(t.Context(), term, map[string][]byte{PartCluster: []byte("second")}); !errors.Is(err, ErrUnreachable) {
				t.Fatalf("got %v, want ErrUnreachable", err)
			}
			eventually(t, "the write to arrive", func() bool { return load(t, direct.Ledger())[PartCluster] == "second" })
			p.Heal()
			write(t, l, term, PartCluster, next)
			if got := load(t, direct.Ledger())[PartCluster]; got != next {
				t.Errorf("the part is %q, want %q", got, next)
			}
		})
	}
}

func TestDeleteAllTakesThisScopeAndNoOther(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		o := options(t, url)
		c := open(t, o)
		o.Scope += "2" // the same letters, and one more
		other := open(t, o)
		term, otherTerm := campaign(t, c, "a"), campaign(t, other, "b")
		write(t, c.Ledger(), term, PartCluster, "x")
		write(t, other.Ledger(), otherTerm, PartCluster, "x")
		if _, err := c.StoreID(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteAll(t.Context(), term); err != nil {
			t.Fatal(err)
		}
		resp, err := c.v3.Get(t.Context(), c.key("id"))
		leader, lerr := c.Leader(t.Context())
		if err != nil || lerr != nil || len(resp.Kvs) != 0 || leader.OK || len(load(t, c.Ledger())) != 0 {
			t.Errorf("something is left: %v %v %v", resp, leader, load(t, c.Ledger()))
		}
		if term.Valid(time.Now()) {
			t.Error("the term still counts as leading")
		}
		if load(t, other.Ledger())[PartCluster] != "x" || !otherTerm.Valid(time.Now()) {
			t.Error("the other scope was touched")
		}
	})
}

// D13.
func TestAStoreHasOneID(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		a, b := open(t, options(t, url)), open(t, options(t, url))
		ids := make(chan string, 8)
		for i := range 8 {
			go func() {
				id, err := []*Client{a, b}[i%2].StoreID(context.Background())
				if err != nil {
					id = err.Error()
				}
				ids <- id
			}()
		}
		first := <-ids
		for range 7 {
			if id := <-ids; id != first {
				t.Errorf("two ids: %q and %q", first, id)
			}
		}
		if len(first) != 36 {
			t.Errorf("%q is not a UUID", first)
		}
	})
}

// What is not slotkeeper's is not believed, and a take-over mends it.
func TestAnIDThatIsNoneIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c := open(t, options(t, url))
		if err := c.CheckStoreID(t.Context()); err != nil {
			t.Errorf("where there is none yet: %v", err)
		}
		for _, bad := range []string{"", "rubbish", "\x00\xff\n", strings.Repeat("x", 36), strings.Repeat("x", 1000), "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}"} {
			if _, err := c.v3.Put(t.Context(), c.key("id"), bad); err != nil {
				t.Fatal(err)
			}
			_, err := c.StoreID(t.Context())
			for _, err := range []error{err, c.CheckStoreID(t.Context())} {
				if !errors.Is(err, ErrForeignID) || !strings.Contains(err.Error(), c.key("id")) || !strings.Contains(err.Error(), "--take-over") ||
					len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\n") || !utf8.ValidString(err.Error()) {
					t.Errorf("%q: error %v", bad, err)
				}
			}
		}
		fresh, err := c.RenewStore(t.Context(), campaign(t, c, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if id, err := c.StoreID(t.Context()); err != nil || id != fresh {
			t.Errorf("renewed to %q: %q, %v", fresh, id, err)
		}
	})
}

// A write of several parts is there as a whole or not at all, whoever reads.
func TestPartsOfOneWriteComeTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		o := options(t, url)
		o.LeaseTTL = time.Minute // nothing here is about losing it
		c := open(t, o)
		term, l := campaign(t, c, "a"), c.Ledger()
		all := func(value string) map[string][]byte {
			parts := map[string][]byte{PartCluster: []byte(value), PartStandbys: []byte(value)}
			for n := range 60 {
				parts[PartSlots(n)], parts[PartPositions(n)] = []byte(value), []byte(value)
			}
			return parts
		}
		if err := l.Save(t.Context(), term, all("0")); err != nil {
			t.Fatal(err)
		}
		reader, done := c.Ledger(), make(chan struct{})
		go func() {
			defer close(done)
			for i := range 50 {
				if err := l.Save(t.Context(), term, all(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
		}()
		for writing := true; writing; {
			select {
			case <-done:
				writing = false
			default:
			}
			seen := load(t, reader)
			for name, value := range seen {
				if value != seen[PartCluster] || len(seen) != 122 {
					t.Fatalf("part %s of %d is of write %s, the cluster's of %s", name, len(seen), value, seen[PartCluster])
				}
			}
		}
		other := c.Ledger()
		load(t, other)
		write(t, l, term, PartSlots(3), "moved")
		if err := other.Save(t.Context(), term, all("x")); !errors.Is(err, ErrConflict) {
			t.Errorf("over a part that moved: %v", err)
		}
		if seen := load(t, reader); seen[PartCluster] != "49" || seen[PartSlots(3)] != "moved" {
			t.Errorf("some parts were written: %v", seen)
		}
	})
}

// What etcd takes in no one transaction is written all the same.
func TestAWriteOfManyBytes(t *testing.T) {
	t.Parallel()
	o := options(t, embedded(t))
	o.LeaseTTL = time.Minute
	c := open(t, o)
	term, l := campaign(t, c, "a"), c.Ledger()
	parts := map[string][]byte{}
	for n := range 200 {
		parts[PartSlots(n)] = bytes.Repeat([]byte{byte('a' + n%26)}, 30<<10)
	}
	if err := l.Save(t.Context(), term, parts); err != nil {
		t.Fatal(err)
	}
	if got := load(t, c.Ledger()); len(got) != 200 {
		t.Errorf("%d parts are there", len(got))
	}
}

func TestSpace(t *testing.T) {
	t.Parallel()
	server := ownEtcd(t, lab.EtcdOptions{TLS: true, ClientCerts: true, Quota: 32 << 20})
	o := options(t, server.Endpoints()[0])
	o.CAFile, o.CertFile, o.KeyFile = server.File("ca.pem"), server.File("client.pem"), server.File("client.key")
	o.LeaseTTL = time.Minute
	c := open(t, o)
	before, err := c.Space(t.Context())
	if err != nil || before.Quota != 32<<20 || before.Used <= 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	term, l := campaign(t, c, "a"), c.Ledger()
	for i := range 20 {
		write(t, l, term, PartCluster, strings.Repeat(fmt.Sprint(i%10), MaxPart))
	}
	eventually(t, "the space to be seen used", func() bool {
		now, err := c.Space(t.Context())
		return err == nil && now.Used > before.Used+10*MaxPart
	})
	if compacted, revisions, err := c.Compacted(t.Context()); compacted || revisions < 20 || err != nil {
		t.Errorf("compacted %t at %d: %v", compacted, revisions, err)
	}
	if err := server.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if compacted, _, err := c.Compacted(t.Context()); !compacted || err != nil {
		t.Errorf("compacted %t: %v", compacted, err)
	}
	embeddedClient := open(t, options(t, embedded(t)))
	if s, err := embeddedClient.Space(t.Context()); err != nil || s.Quota != DefaultQuota {
		t.Errorf("embedded: %+v, %v", s, err)
	}
}
