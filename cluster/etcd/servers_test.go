package etcd

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// patience is how long a condition is waited for that must come.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if dir := os.Getenv("SLOTKEEPER_TEST_EMBED"); dir != "" {
		embedAndWait(dir)
		return
	}
	// They wait far more than they compute.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	stopShared()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// The servers that many tests use, each test with a scope of its own.
var shared struct {
	sync.Mutex
	embedded *Server
	debian   *lab.Etcd
	dirs     []string
}

func stopShared() {
	if shared.embedded != nil {
		_ = shared.embedded.Close()
	}
	if shared.debian != nil {
		_ = shared.debian.Close()
	}
	for _, d := range shared.dirs {
		_ = os.RemoveAll(d)
	}
}

func sharedDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "slotkeeper-etcd-")
	if err != nil {
		t.Fatal(err)
	}
	shared.dirs = append(shared.dirs, d)
	return d
}

func embedded(t *testing.T) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.embedded == nil {
		s, err := Embed(context.Background(), EmbedOptions{DataDir: sharedDir(t)})
		if err != nil {
			t.Fatal(err)
		}
		shared.embedded = s
	}
	return shared.embedded.Endpoint()
}

func debian(t *testing.T) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.debian == nil {
		shared.debian = startEtcd(t, lab.EtcdOptions{})
	}
	return shared.debian.Endpoints()[0]
}

// onBoth runs a test against the embedded server and against etcd as Debian packs it.
func onBoth(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{"embedded": embedded, "debian": debian} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, url(t))
		})
	}
}

var scopes sync.Map // *testing.T to its number: with -count a name comes more than once

// scopeOf gives each test its own scope, without slashes.
func scopeOf(t *testing.T) string {
	n, _ := scopes.LoadOrStore(t, lastScope.Add(1))
	return fmt.Sprint(strings.ReplaceAll(t.Name(), "/", "-"), "-", n)
}

var lastScope atomic.Int64

// testTTL is short enough to be outlived in a test, and long enough for an etcd on
// a machine with other work to answer within a part of it.
const testTTL = 8 * time.Second

func options(t *testing.T, url string) Options {
	return Options{
		Endpoints: []string{url}, Scope: scopeOf(t), LeaseTTL: testTTL,
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: t.Output()}),
	}
}

func open(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// campaign leads, until the test ends at the latest.
func campaign(t *testing.T, c *Client, name string) *Term {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	giveUp := time.AfterFunc(patience, cancel) // not a deadline: the term would have it too
	term, err := c.Campaign(ctx, name, "http://"+name)
	giveUp.Stop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = term.Resign(ctx) // where the test has cut the way to etcd it cannot
	})
	return term
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func ended(t *testing.T, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		t.Fatal("the context did not end")
		return nil
	}
}

// startEtcd starts etcd as Debian packs it, as a program of its own.
func startEtcd(t *testing.T, o lab.EtcdOptions) *lab.Etcd {
	t.Helper()
	o.Members = 1
	e, err := lab.StartEtcd(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ownEtcd is one that ends with the test.
func ownEtcd(t *testing.T, o lab.EtcdOptions) *lab.Etcd {
	t.Helper()
	e := startEtcd(t, o)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// newLink is a way to a server that can be cut; it ends with the test.
func newLink(t *testing.T, url string) *lab.Link {
	t.Helper()
	l, err := lab.NewLink(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// nobody is an address on which nothing listens, nor will while the tests run.
func nobody(t *testing.T) string {
	t.Helper()
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
