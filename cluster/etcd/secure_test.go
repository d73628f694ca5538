package etcd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

func newAuthority(t *testing.T, names ...string) *lab.Authority {
	t.Helper()
	a, err := lab.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	issue(t, a, names...)
	return a
}

func issue(t *testing.T, a *lab.Authority, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := a.Issue(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	server, foreign := ownEtcd(t, lab.EtcdOptions{TLS: true, ClientCerts: true}), newAuthority(t, "client")
	url := server.Endpoints()[0]
	good := options(t, url)
	good.CAFile, good.CertFile, good.KeyFile = server.File("ca.pem"), server.File("client.pem"), server.File("client.key")
	good.DialTimeout = 10 * time.Second

	c := open(t, good)
	term := campaign(t, c, "a")
	write(t, c.Ledger(), term, PartCluster, "x")
	until(t, c.WatchPrefix(t.Context()), "the part over TLS", func(e Event) bool { return string(e.Parts[PartCluster].Value) == "x" })

	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"another authority":         {func(o *Options) { o.CAFile = foreign.File("ca.pem") }, "signed by unknown authority"},
		"the system's authorities":  {func(o *Options) { o.CAFile, o.CertFile, o.KeyFile = "", "", "" }, "signed by unknown authority"},
		"no client certificate":     {func(o *Options) { o.CertFile, o.KeyFile = "", "" }, "asks for a client certificate: give cert_file"},
		"foreign client":            {func(o *Options) { o.CertFile, o.KeyFile = foreign.File("client.pem"), foreign.File("client.key") }, "accept the client certificate in cert_file " + foreign.File("client.pem")},
		"a name not in certificate": {func(o *Options) { o.Endpoints = []string{strings.Replace(url, "127.0.0.1", "localhost", 1)} }, "to match localhost"},
		"without TLS": {func(o *Options) {
			*o = options(t, strings.Replace(url, "https", "http", 1))
		}, "error reading server preface"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good
			tc.change(&o)
			o.DialTimeout = 2 * time.Second
			wantsRefusal(t, o, ErrUnreachable, o.Endpoints[0], tc.want)
		})
	}
}

func TestARenewedCertificateNeedsNoRestart(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "client")
	o := Options{Endpoints: []string{"https://h:1"}, CertFile: a.File("client.pem"), KeyFile: a.File("client.key")}
	config, err := o.tlsConfig(new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	before, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	issue(t, a, "client")
	after, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(before.Certificate[0]) == string(after.Certificate[0]) {
		t.Error("still the old certificate")
	}
}

// wantsRefusal opens and wants an error of that kind that holds the texts.
func wantsRefusal(t *testing.T, o Options, kind error, texts ...string) {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err == nil {
		_ = c.Close()
		t.Fatal("accepted")
	}
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	for _, want := range texts {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to hold %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("a password stands in %q", err)
	}
}

// withUsers starts an etcd with the users root, slotkeeper (may write its
// prefix) and reader (may read it).
func withUsers(t *testing.T) (url string, as func(user, password string, o Options) Options) {
	t.Helper()
	server := ownEtcd(t, lab.EtcdOptions{Users: true, TokenTTL: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := server.Client(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // its context is the test's
	_, err1 := c.UserAdd(ctx, "reader", "hunter2-reader")
	_, err2 := c.RoleAdd(ctx, "reader")
	_, err3 := c.RoleGrantPermission(ctx, "reader", "/slotkeeper/", clientv3.GetPrefixRangeEnd("/slotkeeper/"), clientv3.PermissionType(clientv3.PermRead))
	_, err4 := c.UserGrantRole(ctx, "reader", "reader")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	url = server.Endpoints()[0]
	return url, func(user, password string, o Options) Options {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Endpoints, o.Username, o.PasswordFile = []string{url}, user, file
		return o
	}
}

func TestUsersAndPasswords(t *testing.T) {
	t.Parallel()
	url, as := withUsers(t)
	c := open(t, as("slotkeeper", "hunter2-slotkeeper", options(t, url)))
	term := campaign(t, c, "a")
	write(t, c.Ledger(), term, PartCluster, "x")
	if _, err := c.StoreID(t.Context()); err != nil {
		t.Fatal(err)
	}
	idle := open(t, as("slotkeeper", "hunter2-slotkeeper", options(t, url)))
	first := term.Deadline()
	eventually(t, "a TTL of keep-alives as that user", func() bool { return term.Deadline().After(first.Add(testTTL)) })
	// C42: the idle one's token, good for a second, is none any more.
	if leader, err := idle.Leader(t.Context()); err != nil || leader.V.Name != "a" {
		t.Errorf("with an expired token: %v, %v", leader, err)
	}

	for name, o := range map[string]Options{
		"wrong password": as("slotkeeper", "hunter3", options(t, url)),
		"unknown user":   as("nobody", "hunter2-slotkeeper", options(t, url)),
		"no user":        options(t, url),
		"outside": func() Options {
			o := as("slotkeeper", "hunter2-slotkeeper", options(t, url))
			o.Prefix = "/service"
			return o
		}(),
	} {
		hint := map[string]string{"no user": "set etcd.username and", "outside": "below etcd.prefix"}[name]
		if hint == "" {
			hint = "first line of etcd.password_file"
		}
		t.Run(name, func(t *testing.T) { wantsRefusal(t, o, ErrRefused, url, hint) })
	}
	t.Run("a reader reads and does not campaign", func(t *testing.T) {
		o := as("reader", "hunter2-reader", options(t, url))
		o.Scope = c.opts.Scope
		r := open(t, o)
		if got := load(t, r.Ledger())[PartCluster]; got != "x" {
			t.Errorf("read %q", got)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := r.Campaign(ctx, "r", ""); !errors.Is(err, ErrRefused) {
			t.Errorf("campaigning gives %v, want ErrRefused", err)
		}
	})
}

func TestAnEtcdThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	nobody := nobody(t)
	o := options(t, "http://"+nobody)
	o.DialTimeout = 300 * time.Millisecond
	wantsRefusal(t, o, ErrUnreachable, nobody, "connection refused")

	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	o.Endpoints = []string{"http://" + silent.Addr().String()}
	wantsRefusal(t, o, ErrUnreachable, silent.Addr().String())

	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Endpoints, o.Username, o.PasswordFile = []string{"http://" + nobody}, "u", file
	wantsRefusal(t, o, ErrUnreachable, nobody, "connection refused")

	// One that is there is enough.
	o = options(t, "http://"+nobody)
	o.Endpoints = append(o.Endpoints, embedded(t))
	c := open(t, o)
	campaign(t, c, "a")
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	o := options(t, "http://"+nobody(t))
	o.DialTimeout = time.Hour
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"without user": func(*Options) {},
		"with user":    func(o *Options) { o.Username, o.PasswordFile = "u", file },
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			change(&o)
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
			if _, err := Open(ctx, o); !errors.Is(err, enough) {
				t.Errorf("got %v", err)
			}
		})
	}
}
