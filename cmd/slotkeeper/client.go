package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// daemonClient asks the daemon's HTTP listener.
type daemonClient struct {
	base               string
	username, password string
	http               *http.Client
}

// errNoListener says that the configuration has no http.listen to ask.
var errNoListener = errors.New("http.listen is empty")

// daemonError is an answer other than 200.
type daemonError struct {
	Code int
	Text string
}

func (e *daemonError) Error() string {
	return fmt.Sprintf("the daemon answered %d %s: %s", e.Code, http.StatusText(e.Code), e.Text)
}

// newDaemonClient asks the daemon of this configuration; base is another
// daemon's URL, or "" for the one on this machine.
func newDaemonClient(c *config.Config, base string) (*daemonClient, error) {
	local := base == ""
	if local {
		var err error
		if base, err = localURL(c); err != nil {
			return nil, err
		}
	}
	d := &daemonClient{base: base, username: c.HTTP.Username}
	if c.HTTP.PasswordFile != "" {
		var err error
		if d.password, err = config.ReadPassword("http.password_file", c.HTTP.PasswordFile); err != nil {
			return nil, err
		}
	}
	tlsConfig, err := trust(c, local)
	if err != nil {
		return nil, err
	}
	d.http = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: tlsConfig, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return d, nil
}

func localURL(c *config.Config) (string, error) {
	if c.HTTP.Listen == "" {
		return "", errNoListener
	}
	host, port, err := net.SplitHostPort(c.HTTP.Listen)
	if err != nil {
		return "", fmt.Errorf("reading http.listen: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	u := url.URL{Scheme: scheme(c), Host: net.JoinHostPort(host, port)}
	return u.String(), nil
}

// trust takes the certificate of the configuration for the local daemon's,
// whatever name it was made out to. Another machine's daemon must have one for
// its own name, signed by that one or by whom this machine trusts.
func trust(c *config.Config, local bool) (*tls.Config, error) {
	if c.HTTP.TLS.CertFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.HTTP.TLS.CertFile)
	if err != nil {
		return nil, fmt.Errorf("reading http.tls.cert_file: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("reading http.tls.cert_file %s: it holds no certificate in PEM form", c.HTTP.TLS.CertFile)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading http.tls.cert_file %s: %w", c.HTTP.TLS.CertFile, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil || local {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(text)
	t := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	switch {
	case !local:
	case len(leaf.DNSNames) > 0:
		t.ServerName = leaf.DNSNames[0]
	case len(leaf.IPAddresses) > 0:
		t.ServerName = leaf.IPAddresses[0].String()
	}
	return t, nil
}

// Status asks for the last document.
func (d *daemonClient) Status(ctx context.Context) (status.Status, error) {
	return d.ask(ctx, http.MethodGet, "/status")
}

// Sync asks for a cycle, waits for its end, and gives the document after it.
func (d *daemonClient) Sync(ctx context.Context) (status.Status, error) {
	return d.ask(ctx, http.MethodPost, "/sync")
}

// Forget has a member given up, and gives the document after that.
func (d *daemonClient) Forget(ctx context.Context, node string) (status.Status, error) {
	return d.ask(ctx, http.MethodPost, "/forget?node="+url.QueryEscape(node))
}

// maxDocument is far more than ten thousand pairs need.
const maxDocument = 64 << 20

func (d *daemonClient) ask(ctx context.Context, method, path string) (status.Status, error) {
	var s status.Status
	r, err := http.NewRequestWithContext(ctx, method, d.base+path, http.NoBody)
	if err != nil {
		return s, fmt.Errorf("asking the daemon at %s: %w", d.base, err)
	}
	if d.username != "" {
		r.SetBasicAuth(d.username, d.password)
	}
	answer, err := d.http.Do(r)
	if err != nil {
		return s, fmt.Errorf("asking the daemon at %s: %w", d.base, rootCause(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument))
	if err != nil {
		return s, fmt.Errorf("asking the daemon at %s: %w", d.base, err)
	}
	if answer.StatusCode != http.StatusOK {
		return s, &daemonError{answer.StatusCode, clipped(d.withoutPassword(errorText(body)))}
	}
	if err := json.Unmarshal(body, &s); err != nil || s.SchemaVersion == 0 {
		return s, fmt.Errorf("asking the daemon at %s: the answer is no status of slotkeeper's", d.base)
	}
	if s.SchemaVersion > status.SchemaVersion {
		return s, fmt.Errorf("asking the daemon at %s: its status has schema version %d, this program knows %d: use the daemon's version", d.base, s.SchemaVersion, status.SchemaVersion)
	}
	return s, nil
}

// rootCause takes net/http's repetition of method and URL off.
func rootCause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// withoutPassword takes out of an answer what was shown for it: another program
// may listen there, and repeat the request.
func (d *daemonClient) withoutPassword(text string) string {
	if d.password == "" {
		return text
	}
	shown := base64.StdEncoding.EncodeToString([]byte(d.username + ":" + d.password))
	return strings.NewReplacer(d.password, "***", shown, "***").Replace(text)
}

// errorText is what the daemon said, on one line.
func errorText(body []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		text = e.Error
	}
	return oneLine(text)
}

// clipped is not too long a part of it.
func clipped(text string) string {
	if len(text) > 300 {
		return strings.ToValidUTF8(text[:300], "") + "..."
	}
	return text
}
