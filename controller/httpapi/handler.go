package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/status"
)

// handler holds what requests share.
type handler struct {
	opts    Options
	source  Source
	syncing chan struct{} // one for each POST /sync that waits
}

// route is one path, and the methods that it takes.
type route struct {
	methods []string
	open    bool // also without user and password
	serve   http.HandlerFunc
}

// Handler answers requests with what source says.
func Handler(o Options, source Source) http.Handler {
	h := &handler{opts: o.normal(), source: source, syncing: make(chan struct{}, maxSyncs)}
	metrics, requests := newMetrics(h.opts, source)
	get := []string{http.MethodGet, http.MethodHead}
	routes := map[string]route{
		"/":          {methods: get, serve: h.page},
		"/status":    {methods: get, serve: h.status},
		"/metrics":   {methods: get, serve: metrics.ServeHTTP},
		"/sync":      {methods: []string{http.MethodPost}, serve: h.sync},
		"/forget":    {methods: []string{http.MethodPost}, serve: h.forget},
		"/liveness":  {methods: get, open: true, serve: h.liveness},
		"/readiness": {methods: get, open: true, serve: h.readiness},
	}
	dispatch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.dispatch(w, r, routes) })
	return requests.count(sameOrigin(dispatch), routes)
}

// sameOrigin refuses what a page of another site sends through its visitor's
// browser: any could ask for cycles otherwise.
func sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		unguessed(w)
		fail(w, http.StatusForbidden, "this listener takes no such request from a page of another site; send it without a browser, as curl does")
	}))
	return protection.Handler(next)
}

// unguessed has a browser take an answer for what it says it is, and keep none.
func unguessed(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
}

func (h *handler) dispatch(w http.ResponseWriter, r *http.Request, routes map[string]route) {
	unguessed(w)
	if !h.opts.hostOK(r) {
		fail(w, http.StatusMisdirectedRequest, "this listener is on the loopback interface and takes no request for another host's name; "+
			"a proxy in front of it must ask for 127.0.0.1 or localhost, or use http.username and http.password_file")
		return
	}
	rt, ok := routes[r.URL.Path]
	if (!ok || !rt.open) && !h.allowed(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="slotkeeper", charset="UTF-8"`)
		fail(w, http.StatusUnauthorized, "this needs the user of http.username and the password of http.password_file")
		return
	}
	if !ok {
		fail(w, http.StatusNotFound, "no such path: there are /, /status, /sync, /forget, /metrics, /liveness and /readiness")
		return
	}
	if !slices.Contains(rt.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(rt.methods, ", "))
		fail(w, http.StatusMethodNotAllowed, r.URL.Path+" takes "+strings.Join(rt.methods, " and ")+" only")
		return
	}
	if n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			fail(w, http.StatusRequestEntityTooLarge, "the request has a body, and none is wanted")
			return
		}
		fail(w, http.StatusBadRequest, "the request's body cannot be read")
		return
	} else if n > 0 {
		fail(w, http.StatusBadRequest, "the request has a body, and none is wanted")
		return
	}
	rt.serve(w, r)
}

// allowed compares hashes, so that the time says nothing of where or in what
// length the words differ.
func (h *handler) allowed(r *http.Request) bool {
	if h.opts.Username == "" {
		return true
	}
	user, password, ok := r.BasicAuth()
	a := same(user, h.opts.Username)
	b := same(password, h.opts.Password)
	return ok && a&b == 1
}

func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

func (h *handler) status(w http.ResponseWriter, _ *http.Request) {
	s, ok := h.source.Status()
	if !ok {
		fail(w, http.StatusServiceUnavailable, "no observation is complete yet")
		return
	}
	reply(w, http.StatusOK, s)
}

func (h *handler) sync(w http.ResponseWriter, r *http.Request) {
	select {
	case h.syncing <- struct{}{}:
		defer func() { <-h.syncing }()
	default:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "too many requests for a cycle wait already")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.opts.SyncTimeout)
	defer cancel()
	err := h.source.RequestSync(ctx)
	switch {
	case err == nil:
		h.status(w, r)
	case h.opts.NotLeading(err):
		fail(w, http.StatusConflict, "this controller does not lead"+h.leaderName())
	case errors.Is(err, context.DeadlineExceeded):
		fail(w, http.StatusGatewayTimeout, fmt.Sprintf("no cycle ended within %s", h.opts.SyncTimeout))
	default:
		fail(w, http.StatusServiceUnavailable, "the cycle failed: "+err.Error())
	}
}

func (h *handler) leaderName() string {
	if s, ok := h.source.Status(); ok && s.Leader.Name != "" {
		return ": " + s.Leader.Name + " does"
	}
	return ""
}

func (h *handler) liveness(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{"status": "alive"})
}

func (h *handler) readiness(w http.ResponseWriter, _ *http.Request) {
	s, ok := h.source.Status()
	if !ok {
		fail(w, http.StatusServiceUnavailable, "no observation is complete yet")
		return
	}
	if why := h.notReady(s); why != "" {
		fail(w, http.StatusServiceUnavailable, why)
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ready"})
}

// notReady says why, "" when it is ready. A follower is ready while it can read
// the ledger, whose positions are as old as their writer lets them be.
func (h *handler) notReady(s status.Status) string {
	for _, f := range s.Conditions {
		if f.Code == "etcd_unreachable" {
			return "etcd is unreachable: " + f.Message
		}
	}
	if s.Source == "ledger" {
		return ""
	}
	if age := h.opts.Now().Sub(s.At); age > h.opts.StaleAfter {
		return fmt.Sprintf("the last observation is %s old", age.Round(time.Second))
	}
	return ""
}

// reply writes v as JSON. It is encoded first: a half document under a 200
// would be worse than an error.
func reply(w http.ResponseWriter, code int, v any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		fail(w, http.StatusInternalServerError, "the answer cannot be encoded: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the client is gone: nobody is left to tell
}

func fail(w http.ResponseWriter, code int, text string) {
	b, _ := json.Marshal(map[string]string{"error": text}) // strings cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n'))
}
