package patroni

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// RESTOptions say how to prove oneself to Patroni's REST API, and how to know it.
type RESTOptions struct {
	Username, Password string
	CAFile             string // "" for the system's authorities
	CertFile, KeyFile  string // of the client, "" for none
	// Timeout bounds each request but Switchover and Failover, which last as long
	// as Patroni takes; 0 is 5 s.
	Timeout time.Duration
}

// REST asks the API of any member. It may be used from several goroutines.
// Errors name method, URL and HTTP status, never the password; a *RESTError is an
// answer of Patroni's.
type REST struct {
	options RESTOptions
	client  *http.Client
}

// elsewhere is what to look at where the answer is none of Patroni's.
const elsewhere = "is it Patroni that answers there? See restapi.connect_address in its configuration"

// maxAnswer is far more than any answer of Patroni's.
const maxAnswer = 4 << 20

// NewREST reads the certificates. It connects to nothing.
func NewREST(o RESTOptions) (*REST, error) {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the ca_file of Patroni's REST API: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %s of Patroni's REST API holds no certificate in PEM form", o.CAFile)
		}
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("loading cert_file %s and key_file %s of Patroni's REST API: %w", o.CertFile, o.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &REST{options: o, client: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: config,
			DialContext:     (&net.Dialer{Timeout: o.Timeout}).DialContext,
			// Patroni's members are neighbours: no proxy, and no idle connection that a
			// restarted Patroni would have forgotten.
			DisableKeepAlives: true,
		},
		// Patroni never redirects; the password goes to nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Config reads the dynamic configuration.
func (r *REST) Config(ctx context.Context, m Member) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	text, err := r.ask(ctx, http.MethodGet, m, "/config", nil)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s/config: %w; %s", m.API, err, elsewhere)
	}
	return o, nil
}

// PatchConfig changes the dynamic configuration: mappings are merged, a list is
// put in place of the old one, and null takes a key out. Patroni answers with the
// new one; any other answer leaves open whether it was changed.
func (r *REST) PatchConfig(ctx context.Context, m Member, patch map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	text, err := r.ask(ctx, http.MethodPatch, m, "/config", patch)
	if err != nil {
		return err
	}
	if _, err := parseObject(text); err != nil {
		return fmt.Errorf("whether %s/config was changed is not known: reading the answer: %w; %s", m.API, err, elsewhere)
	}
	return nil
}

// Liveness is what a member's own API says of it now.
type Liveness struct {
	State    string // of its server: running, stopped and others
	Role     Role
	Timeline int64
	Paused   bool
	Received int64 // the WAL position that it has received, on a primary written; 0 where it does not say
	Replayed int64
}

// Status asks a member about itself: what Patroni itself asks before a promotion.
func (r *REST) Status(ctx context.Context, m Member) (Liveness, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	text, err := r.ask(ctx, http.MethodGet, m, "/patroni", nil)
	var answer *RESTError
	if errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable {
		text, err = answer.body, nil // its server does not run: the answer says the same as ever
	}
	if err != nil {
		return Liveness{}, err
	}
	o, err := parseObject(text)
	if err != nil {
		return Liveness{}, fmt.Errorf("reading the answer of %s/patroni: %w", m.API, err)
	}
	xlog := o.object("xlog")
	if xlog == nil {
		xlog = o.object("wal")
	}
	l := Liveness{State: o.text("state"), Role: Role(o.text("role")), Timeline: o.int("timeline", 0), Paused: o.on("pause")}
	if l.Role == "master" {
		l.Role = Primary
	}
	l.Received = xlog.int("received_location", xlog.int("location", 0))
	l.Replayed = xlog.int("replayed_location", 0)
	return l, nil
}

// Switchover asks the leader to hand over and gives Patroni's own words. It
// answers when it is done, also where another than the asked one was promoted: who
// leads afterwards is what the keys say. An error that is neither a *RESTError nor
// an *UnsentError leaves open whether it is under way. It is never asked twice.
func (r *REST) Switchover(ctx context.Context, via Member, leader, candidate string) (string, error) {
	text, err := r.ask(ctx, http.MethodPost, via, "/switchover", map[string]any{"leader": leader, "candidate": candidate})
	return r.clean(text), err
}

// Failover asks for a promotion where there is no healthy leader, as Switchover does.
func (r *REST) Failover(ctx context.Context, via Member, candidate string) (string, error) {
	text, err := r.ask(ctx, http.MethodPost, via, "/failover", map[string]any{"candidate": candidate})
	return string(text), err
}

func (o object) text(name string) string { return text(o[name]) }

func (r *REST) ask(ctx context.Context, method string, m Member, path string, body any) ([]byte, error) {
	if m.API == "" {
		return nil, &UnsentError{fmt.Errorf("asking Patroni %q: its key names no api_url", m.Name)}
	}
	var payload io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("asking Patroni %q: %w", m.Name, err)
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, m.API+path, payload)
	if err != nil {
		return nil, &UnsentError{fmt.Errorf("asking Patroni %q: its api_url cannot be used", m.Name)}
	}
	request.Header.Set("Content-Type", "application/json")
	if r.options.Username != "" {
		request.SetBasicAuth(r.options.Username, r.options.Password)
	}
	var written atomic.Bool
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { written.Store(true) }}))
	answer, err := r.client.Do(request)
	if err != nil {
		// With TLS 1.3 the refusal of our certificate comes when the request is on its
		// way; it ends with the handshake all the same.
		unsent := !written.Load() || certificateRefused(err)
		err = r.unanswered(method, m.API+path, err)
		if unsent {
			err = &UnsentError{err}
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read as far as it matters
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, r.unanswered(method, m.API+path, err)
	}
	if answer.StatusCode/100 != 2 {
		return nil, &RESTError{Method: method, URL: m.API + path, Status: answer.StatusCode, Text: r.clean(text), body: text}
	}
	return text, nil
}

// UnsentError says that a request surely was not taken: there was no connection to
// send it by, or none that the other side agreed to.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap gives what lies under it.
func (e *UnsentError) Unwrap() error { return e.Err }

// unanswered takes the URL off, which the caller has named.
func (r *REST) unanswered(method, where string, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	hint := ""
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		hint = "; set cluster.patroni.rest.ca_file to the authority that has signed its certificate"
	case errors.As(err, &name):
		hint = "; its certificate is for another name than restapi.connect_address has"
	case certificateRefused(err):
		hint = "; it wants a client certificate: set cluster.patroni.rest.cert_file and key_file"
	case errors.Is(err, context.DeadlineExceeded):
		hint = "; Patroni, or what is in front of it, did not answer in time"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		hint = "; it speaks plain HTTP, and its key says https"
	}
	return fmt.Errorf("%s %s: %w%s", method, where, err, hint)
}

// certificateRefused reports whether the other side has ended the handshake for want
// of a certificate that it likes.
func certificateRefused(err error) bool {
	var alert tls.AlertError
	return errors.As(err, &alert) || strings.Contains(err.Error(), "tls: certificate required") || strings.Contains(err.Error(), "tls: bad certificate") ||
		strings.Contains(err.Error(), "tls: unknown certificate authority")
}

// clean makes one line of an answer, without the password, whoever repeats it.
func (r *REST) clean(text []byte) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "?")), " ")
	if p := r.options.Password; p != "" {
		line = strings.ReplaceAll(line, p, "***")
		// The header that carried it, which proxies repeat on their error pages.
		line = strings.ReplaceAll(line, base64.StdEncoding.EncodeToString([]byte(r.options.Username+":"+p)), "***")
	}
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "..."
	}
	return line
}

// RESTError is an answer of Patroni's other than success.
type RESTError struct {
	Method, URL string // the URL holds no user
	Status      int
	Text        string // what it says, one line

	body []byte
}

func (e *RESTError) Error() string {
	text := fmt.Sprintf("%s %s: HTTP status %d", e.Method, e.URL, e.Status)
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Hint says what to do about it.
func (e *RESTError) Hint() string {
	if e.Status/100 == 3 {
		return "Patroni never leads elsewhere; " + elsewhere
	}
	switch e.Status {
	case http.StatusUnauthorized:
		return "set cluster.patroni.rest.username and password_file to those of restapi.authentication in Patroni's configuration"
	case http.StatusForbidden:
		return "Patroni wants a client certificate (cluster.patroni.rest.cert_file and key_file), or this machine in restapi.allowlist"
	case http.StatusConflict:
		return "somebody else has changed the configuration at the same moment: try again"
	case http.StatusServiceUnavailable:
		return "Patroni cannot do that now: look at its log, and at etcd"
	}
	return ""
}
