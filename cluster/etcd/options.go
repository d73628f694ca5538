package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// DefaultPrefix is where the keys of all scopes lie.
	DefaultPrefix = "/slotkeeper"
	// DefaultLeaseTTL is long enough for an etcd election (1 s by default, a few on
	// slow disks) and short enough that a dead leader is replaced quickly.
	DefaultLeaseTTL = 10 * time.Second
	// MinLeaseTTL is the shortest lease that etcd grants with its default election timeout.
	MinLeaseTTL = 2 * time.Second

	defaultDialTimeout    = 3 * time.Second
	defaultRequestTimeout = 2 * time.Second
)

// Options says which etcd and which keys.
type Options struct {
	Endpoints    []string      // URLs, or host:port; all with TLS or all without
	Prefix       string        // "" for DefaultPrefix
	Scope        string        // one word per cluster of PostgreSQL servers
	LeaseTTL     time.Duration // 0 for DefaultLeaseTTL
	Username     string        // "" for none
	PasswordFile string        // read once by Open; a newline at its end is not part of the password
	CAFile       string        // "" for the system's authorities
	CertFile     string        // the client's certificate, read again for each connection
	KeyFile      string
	DialTimeout  time.Duration // how long Open waits for an answer; 0 for 3 s
	// RequestTimeout bounds each request, 0 for 2 s. A request that is not answered
	// by then has failed with ErrUnreachable, and may have been done.
	RequestTimeout time.Duration
	Host           bool         // this process runs the embedded server (Embed) that Endpoints lead to
	Logger         hclog.Logger // nil for none
}

// normal gives the options with defaults filled in, or an ErrOptions that says what is wrong.
func (o Options) normal() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	o.Prefix = strings.TrimRight(o.Prefix, "/")
	if o.LeaseTTL == 0 {
		o.LeaseTTL = DefaultLeaseTTL
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = defaultDialTimeout
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if err := o.check(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	endpoints, err := normalEndpoints(o.Endpoints, o.wantsTLS())
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	o.Endpoints = endpoints
	return o, nil
}

func (o Options) wantsTLS() bool { return o.CAFile != "" || o.CertFile != "" || o.KeyFile != "" }

func (o Options) check() error {
	switch {
	case o.Scope == "" || strings.ContainsAny(o.Scope, "/\x00\n"):
		return fmt.Errorf("scope %q: want a word without slashes", o.Scope)
	case !strings.HasPrefix(o.Prefix, "/"):
		return fmt.Errorf("prefix %q: want a path that begins with a slash, such as %s", o.Prefix, DefaultPrefix)
	case o.LeaseTTL < MinLeaseTTL:
		return fmt.Errorf("lease_ttl %s: want %s at least, the shortest lease that etcd grants", o.LeaseTTL, MinLeaseTTL)
	case o.LeaseTTL > time.Hour:
		return fmt.Errorf("lease_ttl %s: want an hour at most; a dead leader is replaced only after it", o.LeaseTTL)
	case o.Username == "" && o.PasswordFile != "":
		return errors.New("password_file is given without username")
	case o.Username != "" && o.PasswordFile == "":
		return errors.New("username is given without password_file")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("cert_file and key_file belong together: give both or none")
	case o.DialTimeout < 0 || o.RequestTimeout < 0:
		return errors.New("a timeout is negative")
	}
	return nil
}

// normalEndpoints adds the scheme where it is missing and refuses what the
// client would misread: it takes the first endpoint's scheme for all of them.
func normalEndpoints(in []string, wantTLS bool) ([]string, error) {
	if len(in) == 0 {
		return nil, errors.New("no endpoints")
	}
	out := make([]string, 0, len(in))
	for i, ep := range in {
		u, err := parseEndpoint(ep, wantTLS)
		if err != nil {
			return nil, fmt.Errorf("endpoint %d: %w", i+1, err)
		}
		if wantTLS && u.Scheme == "http" {
			return nil, fmt.Errorf("endpoint %s: ca_file or cert_file is given, so it must begin with https://", u)
		}
		if i > 0 && !strings.HasPrefix(out[0], u.Scheme+":") {
			return nil, fmt.Errorf("endpoints %s and %s: use https for all or for none", out[0], u)
		}
		out = append(out, u.String())
	}
	return out, nil
}

// parseEndpoint never quotes ep where it may hold a password.
func parseEndpoint(ep string, wantTLS bool) (*url.URL, error) {
	ep = strings.TrimSpace(ep)
	if strings.Contains(ep, "@") {
		return nil, errors.New("holds a user or password; give them as username and password_file")
	}
	if !strings.Contains(ep, "://") {
		scheme := "http"
		if wantTLS {
			scheme = "https"
		}
		ep = scheme + "://" + ep
	}
	u, err := url.Parse(ep)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL: want such as https://etcd1:2379", ep)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
		return nil, fmt.Errorf("%q: want such as https://etcd1:2379", ep)
	}
	if u.Port() == "" {
		u.Host += ":2379"
	}
	return u, nil
}

// tlsConfig is nil when the endpoints are without TLS. asked is set when a
// server asks for the client's certificate.
func (o Options) tlsConfig(asked *atomic.Bool) (*tls.Config, error) {
	if !strings.HasPrefix(o.Endpoints[0], "https:") {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: reading ca_file: %w", ErrOptions, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: ca_file %s holds no certificate in PEM form", ErrOptions, o.CAFile)
		}
	}
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, fmt.Errorf("%w: loading cert_file %s and key_file %s: %w", ErrOptions, o.CertFile, o.KeyFile, err)
		}
	}
	// Read anew for each connection, so that a renewed certificate needs no restart.
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		if o.CertFile == "" {
			return &tls.Certificate{}, nil // sends none
		}
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		return &pair, err
	}
	return cfg, nil
}

// password is "" when there is no user.
func (o Options) password() (string, error) {
	if o.PasswordFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(o.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("%w: reading password_file: %w", ErrOptions, err)
	}
	p := strings.TrimRight(string(b), "\r\n")
	if p == "" {
		return "", fmt.Errorf("%w: password_file %s is empty", ErrOptions, o.PasswordFile)
	}
	return p, nil
}
