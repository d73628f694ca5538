package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 30, 12, 0, 10, 0, time.UTC)

var errFollower = errors.New("follower")

type fake struct {
	doc  *status.Status
	sync func(context.Context) error
	lost error // what Forget gives
}

func (f fake) Status() (status.Status, bool) {
	if f.doc == nil {
		return status.Status{}, false
	}
	return *f.doc, true
}

func (f fake) Forget(context.Context, string) error { return f.lost }

type refusal struct{ error }

func (refusal) Refused() bool { return true }

func (f fake) RequestSync(ctx context.Context) error { return f.sync(ctx) }

func document() *status.Status {
	return &status.Status{
		SchemaVersion: 1, Scope: "shop", At: now.Add(-time.Second), ObservedAt: now.Add(-2 * time.Second), Complete: true, Source: "daemon",
		Leader:  status.Leader{Name: "node1", Epoch: 7},
		Primary: &status.Primary{Node: "a", Timeline: 3},
		Members: []status.Member{{Node: "a", Role: "primary"}, {Node: "b", Role: "standby"}, {Node: "c", Role: "unknown", Error: "no answer"}},
		Slots: []status.Slot{
			{Name: "cdc", Database: `<script>alert("x")</script>`, Standbys: []status.Standby{
				{Node: "b", Verdict: plan.Safe, Since: now.Add(-time.Minute), LagBytes: cluster.Some[int64](96), ProofAge: cluster.Some(0.5)},
			}},
			{Name: "gone", Database: "bad\xff", Standbys: []status.Standby{
				{Node: "b", Verdict: plan.Lost, Reason: plan.ReasonWALRemoved, Since: now},
			}},
		},
		Conditions: []status.Finding{{Code: "hold_age", Severity: plan.Warning, Message: "old"}},
	}
}

func options() Options {
	return Options{Now: func() time.Time { return now }, NotLeading: func(err error) bool { return errors.Is(err, errFollower) }, Version: "1.2.3"}
}

func ask(h http.Handler, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAnswers(t *testing.T) {
	with := fake{doc: document(), sync: func(context.Context) error { return nil }}
	none := fake{sync: func(context.Context) error { return nil }}
	stale := document()
	stale.At = now.Add(-time.Hour)
	follower, cut := document(), document()
	follower.Source, follower.At = "ledger", now.Add(-time.Hour)
	cut.Conditions = []status.Finding{{Code: "etcd_unreachable", Message: "no answer"}}
	for name, c := range map[string]struct {
		source       Source
		method, path string
		body         string
		code         int
		want         string
	}{
		"status":               {with, "GET", "/status", "", 200, `"scope":"shop"`},
		"status, none yet":     {none, "GET", "/status", "", 503, "no observation is complete yet"},
		"status, HEAD":         {with, "HEAD", "/status", "", 200, ""},
		"status, POST":         {with, "POST", "/status", "", 405, "/status takes GET and HEAD only"},
		"sync":                 {with, "POST", "/sync", "", 200, `"scope":"shop"`},
		"sync, GET":            {with, "GET", "/sync", "", 405, "/sync takes POST only"},
		"sync, with a body":    {with, "POST", "/sync", "x", 400, "has a body"},
		"sync, huge body":      {with, "POST", "/sync", strings.Repeat("x", maxBody+1), 413, "has a body"},
		"sync, follower":       {fake{doc: document(), sync: func(context.Context) error { return errFollower }}, "POST", "/sync", "", 409, "does not lead: node1 does"},
		"sync, too late":       {fake{sync: func(context.Context) error { return context.DeadlineExceeded }}, "POST", "/sync", "", 504, "no cycle ended within 30s"},
		"forget":               {with, "POST", "/forget?node=c", "", 200, `"scope":"shop"`},
		"forget, GET":          {with, "GET", "/forget?node=c", "", 405, "/forget takes POST only"},
		"forget, nobody":       {with, "POST", "/forget", "", 400, "which member?"},
		"forget, refused":      {fake{lost: refusal{errors.New("c answers")}}, "POST", "/forget?node=c", "", 422, "c answers"},
		"forget, follower":     {fake{doc: document(), lost: errFollower}, "POST", "/forget?node=c", "", 409, "does not lead: node1 does"},
		"forget, too late":     {fake{lost: context.DeadlineExceeded}, "POST", "/forget?node=c", "", 504, "no cycle ended within 30s"},
		"forget, failed":       {fake{lost: errors.New("no etcd")}, "POST", "/forget?node=c", "", 503, "the cycle failed: no etcd"},
		"sync, failed":         {fake{sync: func(context.Context) error { return errors.New("no etcd") }}, "POST", "/sync", "", 503, "the cycle failed: no etcd"},
		"liveness":             {none, "GET", "/liveness", "", 200, "alive"},
		"readiness":            {with, "GET", "/readiness", "", 200, "ready"},
		"readiness, none yet":  {none, "GET", "/readiness", "", 503, "no observation"},
		"readiness, stale":     {fake{doc: stale}, "GET", "/readiness", "", 503, "the last observation is 1h0m0s old"},
		"readiness, follower":  {fake{doc: follower}, "GET", "/readiness", "", 200, "ready"},
		"readiness, no etcd":   {fake{doc: cut}, "GET", "/readiness", "", 503, "etcd is unreachable: no answer"},
		"no such path":         {with, "GET", "/admin", "", 404, "no such path"},
		"a path above":         {with, "GET", "/../status", "", 404, "no such path"},
		"page, none yet":       {none, "GET", "/", "", 200, "No observation is complete yet."},
		"page":                 {with, "GET", "/", "", 200, `<td class="SAFE">SAFE</td>`},
		"page, names escaped":  {with, "GET", "/", "", 200, `&lt;script&gt;`},
		"page, no primary":     {fake{doc: &status.Status{}}, "GET", "/", "", 200, `<b class="critical">none</b>`},
		"metrics, none yet":    {none, "GET", "/metrics", "", 200, "slotkeeper_status_available 0"},
		"metrics, a bad label": {with, "GET", "/metrics", "", 200, "bad\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(Handler(options(), c.source), c.method, c.path, func(r *http.Request) {
				if c.body != "" {
					r.Body = io.NopCloser(strings.NewReader(c.body))
				}
			})
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s\nwant %d with %s", w.Code, w.Body, c.code, c.want)
			}
			if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") == "" {
				t.Error("no Allow header")
			}
		})
	}
	if body := ask(Handler(options(), with), "GET", "/", nil).Body.String(); strings.Contains(body, "<script>") {
		t.Error("a name stands on the page as it is")
	}
}

func TestStatusIsTheDocument(t *testing.T) {
	var got status.Status
	w := ask(Handler(options(), fake{doc: document()}), "GET", "/status", nil)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Slots[0].Standbys[0].LagBytes.V != 96 {
		t.Errorf("%v: %s", err, w.Body)
	}
}

func TestMetrics(t *testing.T) {
	body := ask(Handler(options(), fake{doc: document()}), "GET", "/metrics", nil).Body.String()
	pair := `{database="<script>alert(\"x\")</script>",slot="cdc",standby="b"`
	for _, want := range []string{
		`slotkeeper_build_info{version="1.2.3"} 1`,
		`slotkeeper_observation_age_seconds 2`,
		`slotkeeper_mirror_verdict` + pair + `,verdict="SAFE"} 1`,
		`slotkeeper_mirror_verdict` + pair + `,verdict="LOST"} 0`,
		`slotkeeper_mirror_lag_bytes` + pair + `} 96`,
		`slotkeeper_mirror_proof_age_seconds` + pair + `} 0.5`,
		`slotkeeper_mirror_verdict_age_seconds` + pair + `} 60`,
		`slotkeeper_member_up{node="c"} 0`,
		`slotkeeper_condition{code="hold_age",severity="warning",subject=""} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "slotkeeper_mirror_lag_bytes") && strings.Contains(line, `slot="gone"`) {
			t.Errorf("a lost slot has a lag: %s", line)
		}
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "slotkeeper_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestRequestsOfStrangersMakeNoSeries(t *testing.T) {
	h := Handler(options(), fake{doc: document()})
	for i := range 20 {
		ask(h, "GET", fmt.Sprintf("/scan%d", i), nil)
	}
	body := ask(h, "GET", "/metrics", nil).Body.String()
	if !strings.Contains(body, `slotkeeper_http_requests_total{code="404",path="other"} 20`) {
		t.Error(body)
	}
}

func TestUserAndPassword(t *testing.T) {
	o := options()
	o.Username, o.Password = "ann", "hunter2"
	h := Handler(o, fake{doc: document(), sync: func(context.Context) error { return nil }})
	auth := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		code   int
	}{
		"right":             {"/status", auth("ann", "hunter2"), 200},
		"none":              {"/status", nil, 401},
		"wrong password":    {"/status", auth("ann", "hunter"), 401},
		"wrong user":        {"/status", auth("bob", "hunter2"), 401},
		"empty":             {"/", auth("", ""), 401},
		"metrics":           {"/metrics", nil, 401},
		"unknown path":      {"/x", nil, 401},
		"liveness is open":  {"/liveness", nil, 200},
		"readiness is open": {"/readiness", nil, 200},
	} {
		if w := ask(h, "GET", c.path, c.change); w.Code != c.code || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.code)
		}
	}
	if w := ask(h, "POST", "/sync", nil); w.Code != 401 {
		t.Errorf("sync without a user: %d", w.Code)
	}
}

func TestOtherSitesCannotAskForCycles(t *testing.T) {
	h := Handler(options(), fake{doc: document(), sync: func(context.Context) error { t.Error("a cycle was asked for"); return nil }})
	w := ask(h, "POST", "/sync", func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") })
	var answer struct{ Error string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusForbidden ||
		!strings.Contains(answer.Error, "another site") || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %d, %v: %s, %v", w.Code, w.Header(), w.Body, err)
	}
}

func TestTooManyWaitForCycles(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	h := Handler(options(), fake{doc: document(), sync: func(context.Context) error { started <- struct{}{}; <-release; return nil }})
	done := make(chan int)
	for range maxSyncs {
		go func() { done <- ask(h, "POST", "/sync", nil).Code }()
		<-started
	}
	if w := ask(h, "POST", "/sync", nil); w.Code != http.StatusTooManyRequests {
		t.Errorf("got %d", w.Code)
	}
	close(release)
	for range maxSyncs {
		if code := <-done; code != 200 {
			t.Errorf("got %d", code)
		}
	}
}

func TestTakenPortIsAnErrorAtStart(t *testing.T) {
	s, err := Listen(t.Context(), Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Listen(t.Context(), Options{Listen: s.Addr().String()}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestMissingCertificateIsAnErrorAtStart(t *testing.T) {
	if _, err := Listen(t.Context(), Options{Listen: "127.0.0.1:0", CertFile: "none.pem", KeyFile: "none.key"}); err == nil || !strings.Contains(err.Error(), "none.pem") {
		t.Errorf("got %v", err)
	}
}

// TestServeEnds: a request that waits does not hold the end up.
func TestServeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	s, err := Listen(ctx, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(ctx, fake{sync: func(ctx context.Context) error { close(started); <-ctx.Done(); return ctx.Err() }})
	}()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /sync HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	<-started
	cancel()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "503") {
		t.Errorf("the waiting request got %q, %v", line, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestHostileRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Listen(ctx, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, fake{doc: document()}) }()
	defer func() { cancel(); <-served }()
	for name, c := range map[string]struct{ text, want string }{
		"not HTTP":     {"\x16\x03\x01\x00\r\n\r\n", "400"},
		"no host":      {"GET /status HTTP/1.1\r\n\r\n", "400"},
		"huge header":  {"GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431"},
		"odd method":   {"BREW /status HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"},
		"bad length":   {"POST /sync HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "400"},
		"bad chunks":   {"POST /sync HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
		"encoded path": {"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, c.text) // the server may hang up before the end of it
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, c.want) {
				t.Errorf("got %q, %v; want %s", line, err, c.want)
			}
		})
	}
}
