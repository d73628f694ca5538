package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no endpoints":        {func(o *Options) { o.Endpoints = nil }, "no endpoints"},
		"empty endpoint":      {func(o *Options) { o.Endpoints = []string{""} }, "endpoint 1"},
		"password in URL":     {func(o *Options) { o.Endpoints = []string{"http://u:hunter2@h:1"} }, "username and password_file"},
		"broken URL":          {func(o *Options) { o.Endpoints = []string{"http://h:x"} }, "not a URL"},
		"scheme":              {func(o *Options) { o.Endpoints = []string{"ftp://h:1"} }, "want such as"},
		"path":                {func(o *Options) { o.Endpoints = []string{"http://h:1/v3"} }, "want such as"},
		"mixed":               {func(o *Options) { o.Endpoints = []string{"https://h:1", "http://i:1"} }, "https for all or for none"},
		"TLS files, http":     {func(o *Options) { o.Endpoints, o.CAFile = []string{"http://h:1"}, "x" }, "must begin with https://"},
		"no scope":            {func(o *Options) { o.Scope = "" }, "scope"},
		"scope with slash":    {func(o *Options) { o.Scope = "a/b" }, "scope"},
		"relative prefix":     {func(o *Options) { o.Prefix = "x" }, "prefix"},
		"short lease":         {func(o *Options) { o.LeaseTTL = time.Second }, "lease_ttl"},
		"long lease":          {func(o *Options) { o.LeaseTTL = 2 * time.Hour }, "lease_ttl"},
		"negative timeout":    {func(o *Options) { o.DialTimeout = -1 }, "negative"},
		"user alone":          {func(o *Options) { o.Username = "u" }, "without password_file"},
		"password alone":      {func(o *Options) { o.PasswordFile = "f" }, "without username"},
		"certificate alone":   {func(o *Options) { o.Endpoints, o.CertFile = []string{"https://h:1"}, "f" }, "belong together"},
		"no password file":    {func(o *Options) { o.Username, o.PasswordFile = "u", filepath.Join(dir, "none") }, "reading password_file"},
		"empty password file": {func(o *Options) { o.Username, o.PasswordFile = "u", file("empty", "\n") }, "is empty"},
		"no ca_file":          {func(o *Options) { o.Endpoints, o.CAFile = []string{"h:1"}, filepath.Join(dir, "none") }, "reading ca_file"},
		"ca_file is no PEM":   {func(o *Options) { o.Endpoints, o.CAFile = []string{"h:1"}, file("ca", "x") }, "no certificate in PEM form"},
		"cert_file is no PEM": {func(o *Options) {
			o.Endpoints, o.CertFile, o.KeyFile = []string{"h:1"}, file("c", "x"), file("k", "hunter2")
		}, "loading cert_file"},
		"TLS files, bare host": {func(o *Options) { o.Endpoints, o.CAFile = []string{"h:1", "http://i:1"}, "x" }, "must begin with https://"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Endpoints: []string{"http://127.0.0.1:1"}, Scope: "shop"}
			tc.change(&o)
			wantsRefusal(t, o, ErrOptions, tc.want)
		})
	}
}

func TestEndpointsAreMadeWhole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   []string
		tls  bool
		want []string
	}{
		"bare":     {[]string{"h:1", " i "}, false, []string{"http://h:1", "http://i:2379"}},
		"bare TLS": {[]string{"h:1", "https://[::1]/"}, true, []string{"https://h:1", "https://[::1]:2379"}},
		"as given": {[]string{"https://h:1"}, false, []string{"https://h:1"}},
	} {
		got, err := normalEndpoints(tc.in, tc.tls)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o, err := Options{Endpoints: []string{"h"}, Scope: "shop", Prefix: "/p/"}.normal()
	if err != nil {
		t.Fatal(err)
	}
	c := Client{opts: o}
	if o.LeaseTTL != DefaultLeaseTTL || o.DialTimeout <= 0 || o.RequestTimeout <= 0 || o.Logger == nil || c.key("id") != "/p/shop/id" {
		t.Errorf("got %+v, key %s", o, c.key("id"))
	}
}

func TestCausesLoseTheLayersAroundThem(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`rpc error: code = DeadlineExceeded desc = latest balancer error: last connection error: connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "dial tcp 127.0.0.1:1: connect: connection refused",
		`rpc error: code = Unavailable desc = connection error: desc = "transport: authentication handshake failed: 127.0.0.1:2: tls: say \"no\""`:                                                             `127.0.0.1:2: tls: say "no"`,
		"etcdserver: no leader": "etcdserver: no leader",
	} {
		if got := cleanCause(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !errors.Is(classify(os.ErrClosed), nil) {
		t.Error("any error counts as one of etcd's")
	}
}
