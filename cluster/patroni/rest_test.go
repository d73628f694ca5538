package patroni

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// C38: whatever an API answers, the error says method, status and what to do, and
// no password.
const secret = `p:a%s@s"w`

func server(t *testing.T, handler http.HandlerFunc) Member {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return Member{Name: "n", API: s.URL}
}

func rest(t *testing.T, o RESTOptions) *REST {
	t.Helper()
	r, err := NewREST(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestC38BasicAuthentication(t *testing.T) {
	var patched string
	m := server(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "admin" || password != secret {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "no auth header received, not %s", secret)
			return
		}
		body, _ := io.ReadAll(r.Body)
		patched = r.Method + " " + r.URL.Path + " " + string(body)
		fmt.Fprint(w, `{"ttl":20}`)
	})
	good := rest(t, RESTOptions{Username: "admin", Password: secret})
	if err := good.PatchConfig(t.Context(), m, map[string]any{"pause": nil}); err != nil || patched != `PATCH /config {"pause":null}` {
		t.Errorf("%v, %s", err, patched)
	}
	config, err := good.Config(t.Context(), m)
	if err != nil || fmt.Sprint(config["ttl"]) != "20" {
		t.Errorf("%v %v", config, err)
	}
	patched = ""
	err = rest(t, RESTOptions{Username: "admin", Password: secret + "x"}).PatchConfig(t.Context(), m, map[string]any{"pause": true})
	var answer *RESTError
	if !errors.As(err, &answer) || answer.Status != 401 || !strings.Contains(answer.Hint(), "password_file") || !strings.Contains(err.Error(), "HTTP status 401") || patched != "" {
		t.Errorf("%v", err)
	}
	repeats := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, "you said "+password+" by "+r.Header.Get("Authorization"), http.StatusInternalServerError)
	})
	if _, err := good.Config(t.Context(), repeats); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "you said *** by Basic ***") {
		t.Errorf("%v", err)
	}
	page := server(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in</html>") })
	if err := good.PatchConfig(t.Context(), page, map[string]any{"pause": nil}); err == nil || !strings.Contains(err.Error(), "is not known") || !strings.Contains(err.Error(), "connect_address") {
		t.Errorf("%v", err)
	}
	leads := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	})
	if _, err := good.Config(t.Context(), leads); !errors.As(err, &answer) || answer.Status != 302 || !strings.Contains(answer.Hint(), "connect_address") {
		t.Errorf("%v", err)
	}
}

func TestC38Certificates(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	quiet := log.New(io.Discard, "", 0)
	plain := httptest.NewTLSServer(answer)
	defer plain.Close()
	strict := httptest.NewUnstartedServer(answer)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.Config.ErrorLog, plain.Config.ErrorLog = quiet, quiet
	strict.StartTLS()
	defer strict.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: plain.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rest(t, RESTOptions{CAFile: ca}).Config(t.Context(), Member{Name: "n", API: plain.URL}); err != nil {
		t.Error(err)
	}
	if _, err := rest(t, RESTOptions{}).Config(t.Context(), Member{Name: "n", API: plain.URL}); err == nil || !strings.Contains(err.Error(), "ca_file") {
		t.Errorf("an unknown authority: %v", err)
	}
	if _, err := rest(t, RESTOptions{CAFile: ca}).Config(t.Context(), Member{Name: "n", API: strict.URL}); err == nil || !strings.Contains(err.Error(), "cert_file") {
		t.Errorf("without a certificate of the client: %v", err)
	}
	if _, err := NewREST(RESTOptions{CAFile: ca, CertFile: ca, KeyFile: ca}); err == nil {
		t.Error("a certificate without its key")
	}
	if _, err := NewREST(RESTOptions{CAFile: "/nowhere"}); err == nil {
		t.Error("no such authority")
	}
	http := server(t, answer)
	if _, err := rest(t, RESTOptions{}).Config(t.Context(), Member{Name: "n", API: strings.Replace(http.API, "http:", "https:", 1)}); err == nil || !strings.Contains(err.Error(), "plain HTTP") {
		t.Errorf("%v", err)
	}
}

func TestC38AddressesDeadlinesAndNonsense(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Log("this machine has no IPv6: the rest is tried without")
	} else {
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })}}
		s.Start()
		defer s.Close()
		m := parseMember("n", []byte(`{"conn_url":"postgres://[::1]:1/x","api_url":"http://u:hunter2@`+l.Addr().String()+`/patroni"}`))
		if _, err := rest(t, RESTOptions{}).Config(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	if _, err := rest(t, RESTOptions{}).Config(t.Context(), Member{Name: "n"}); err == nil || !strings.Contains(err.Error(), "no api_url") {
		t.Errorf("%v", err)
	}
	silent := make(chan struct{})
	hanging := server(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-silent:
		}
	})
	defer close(silent)
	if _, err := rest(t, RESTOptions{Timeout: 50 * time.Millisecond}).Config(t.Context(), hanging); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	redirects := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	var answer *RESTError
	if _, err := rest(t, RESTOptions{}).Config(t.Context(), redirects); !errors.As(err, &answer) || answer.Status != http.StatusFound {
		t.Errorf("a redirect was followed: %v", err)
	}
	rubbish := server(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if _, err := rest(t, RESTOptions{}).Config(t.Context(), rubbish); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("%v", err)
	}
}

func TestStatusAndSwitchover(t *testing.T) {
	asked := ""
	m := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.URL.Path + " " + string(body)
		switch r.URL.Path {
		case "/patroni":
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"state":"starting","role":"master","timeline":3,"pause":true,"xlog":{"received_location":67109760,"replayed_location":67109000}}`)
		case "/switchover":
			fmt.Fprint(w, `Switched over to "node3" instead of "node2"`)
		default:
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, "leader name does not match")
		}
	})
	r := rest(t, RESTOptions{})
	got, err := r.Status(t.Context(), m)
	if want := (Liveness{State: "starting", Role: Primary, Timeline: 3, Paused: true, Received: 67109760, Replayed: 67109000}); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	text, err := r.Switchover(t.Context(), m, "node1", "node2")
	if err != nil || !strings.Contains(text, "instead of") || asked != `/switchover {"candidate":"node2","leader":"node1"}` {
		t.Errorf("%s, %s, %v", text, asked, err)
	}
	var answer *RESTError
	if _, err := r.Failover(t.Context(), m, "node2"); !errors.As(err, &answer) || answer.Status != http.StatusPreconditionFailed || answer.Text != "leader name does not match" {
		t.Errorf("%v", err)
	}
}

// A request for a switchover leaves this machine once, whatever becomes of it; and
// only where it surely was not taken does the error say so.
func TestSwitchoverIsAskedOnce(t *testing.T) {
	var asked atomic.Int32
	cut := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.ReadAll(r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	ask := func(r *REST, m Member) (unsent bool, err error) {
		_, err = r.Switchover(t.Context(), m, "node1", "node2")
		var u *UnsentError
		return errors.As(err, &u), err
	}
	if unsent, err := ask(rest(t, RESTOptions{}), cut); err == nil || unsent || asked.Load() != 1 {
		t.Errorf("cut off: asked %d times, unsent %v, %v", asked.Load(), unsent, err)
	}
	half := server(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "Successfully swi")
	})
	if unsent, err := ask(rest(t, RESTOptions{}), half); err == nil || unsent || asked.Load() != 2 {
		t.Errorf("half an answer: asked %d times, unsent %v, %v", asked.Load(), unsent, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := Member{Name: "n", API: "http://" + l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if unsent, err := ask(rest(t, RESTOptions{}), closed); err == nil || !unsent {
		t.Errorf("a closed port: unsent %v, %v", unsent, err)
	}
	if unsent, err := ask(rest(t, RESTOptions{}), Member{Name: "n"}); err == nil || !unsent {
		t.Errorf("no address: unsent %v, %v", unsent, err)
	}
	strict := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.Config.ErrorLog = log.New(io.Discard, "", 0)
	strict.StartTLS()
	defer strict.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: strict.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if unsent, err := ask(rest(t, RESTOptions{CAFile: ca}), Member{Name: "n", API: strict.URL}); err == nil || !unsent || asked.Load() != 2 {
		t.Errorf("without a certificate: asked %d times, unsent %v, %v", asked.Load(), unsent, err)
	}
}
