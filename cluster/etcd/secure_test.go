package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// authority signs certificates in a folder of its own.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.key, a.cert = a.issue(t, "ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) server(t *testing.T) {
	a.issue(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// issue writes NAME.pem and NAME.key. The first one that is issued signs itself.
func (a *authority) issue(t *testing.T, name string, c *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.last++
	c.SerialNumber, c.Subject = big.NewInt(a.last), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", "CERTIFICATE", der)
	a.write(t, name+".key", "PRIVATE KEY", keyDER)
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, c
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	own, foreign := newAuthority(t), newAuthority(t)
	own.server(t)
	own.issue(t, "client", &x509.Certificate{})
	foreign.issue(t, "client", &x509.Certificate{})
	server := startEtcd(t, t.TempDir(), "https", "--client-cert-auth", "--trusted-ca-file", own.file("ca.pem"),
		"--cert-file", own.file("server.pem"), "--key-file", own.file("server.key"))
	t.Cleanup(server.stop)
	good := options(t, server.url)
	good.CAFile, good.CertFile, good.KeyFile = own.file("ca.pem"), own.file("client.pem"), own.file("client.key")
	good.DialTimeout = 10 * time.Second

	c := open(t, good)
	term := campaign(t, c, "a")
	write(t, c.Ledger(), term, PartCluster, "x")
	until(t, c.WatchPrefix(t.Context()), "the part over TLS", func(e Event) bool { return string(e.Parts[PartCluster].Value) == "x" })

	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"another authority":         {func(o *Options) { o.CAFile = foreign.file("ca.pem") }, "signed by unknown authority"},
		"the system's authorities":  {func(o *Options) { o.CAFile, o.CertFile, o.KeyFile = "", "", "" }, "signed by unknown authority"},
		"no client certificate":     {func(o *Options) { o.CertFile, o.KeyFile = "", "" }, "asks for a client certificate: give cert_file"},
		"foreign client":            {func(o *Options) { o.CertFile, o.KeyFile = foreign.file("client.pem"), foreign.file("client.key") }, "accept the client certificate in cert_file " + foreign.file("client.pem")},
		"a name not in certificate": {func(o *Options) { o.Endpoints = []string{strings.Replace(server.url, "127.0.0.1", "localhost", 1)} }, "to match localhost"},
		"without TLS": {func(o *Options) {
			*o = options(t, strings.Replace(server.url, "https", "http", 1))
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
	a := newAuthority(t)
	a.issue(t, "client", &x509.Certificate{})
	o := Options{Endpoints: []string{"https://h:1"}, CertFile: a.file("client.pem"), KeyFile: a.file("client.key")}
	config, err := o.tlsConfig(new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	before, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	a.issue(t, "client", &x509.Certificate{})
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
func withUsers(t *testing.T) (url string, passwords func(user, password string, o Options) Options) {
	t.Helper()
	server := startEtcd(t, t.TempDir(), "http", "--auth-token-ttl", "1")
	t.Cleanup(server.stop)
	c := open(t, options(t, server.url)).v3
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	end := clientv3.GetPrefixRangeEnd("/slotkeeper/")
	for user, kind := range map[string]clientv3.PermissionType{
		"root": clientv3.PermissionType(clientv3.PermReadWrite), "slotkeeper": clientv3.PermissionType(clientv3.PermReadWrite),
		"reader": clientv3.PermissionType(clientv3.PermRead),
	} {
		must(c.UserAdd(ctx, user, "hunter2-"+user))
		must(c.RoleAdd(ctx, user))
		must(c.RoleGrantPermission(ctx, user, "/slotkeeper/", end, kind))
		must(c.UserGrantRole(ctx, user, user))
	}
	must(c.AuthEnable(ctx))
	return server.url, func(user, password string, o Options) Options {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Endpoints, o.Username, o.PasswordFile = []string{server.url}, user, file
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
	eventually(t, "two TTLs of keep-alives as that user", func() bool { return term.Deadline().After(first.Add(2 * MinLeaseTTL)) })
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
		t.Run(name, func(t *testing.T) { wantsRefusal(t, o, ErrRefused, url) })
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
	nobody := freePort()
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
	o := options(t, "http://"+freePort())
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
