package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func TestAnswersOfTheDaemon(t *testing.T) {
	good, err := json.Marshal(shop())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code int
		body string
		want string // "" for success
	}{
		"a status":        {200, string(good), ""},
		"not JSON":        {200, "<html>", "is no status of slotkeeper's"},
		"another's JSON":  {200, `{"status":"ok"}`, "is no status of slotkeeper's"},
		"a newer schema":  {200, `{"schema_version":99}`, "schema version 99"},
		"an error":        {503, `{"error":"no observation"}`, "503 Service Unavailable: no observation"},
		"a redirect":      {302, "", "302 Found"},
		"a long error":    {500, strings.Repeat("x ", 1000), "..."},
		"not admitted":    {401, `{"error":"who are you"}`, "401 Unauthorized: who are you"},
		"an empty answer": {200, "", "is no status of slotkeeper's"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			client, err := newDaemonClient(config.Default(), server.URL)
			if err != nil {
				t.Fatal(err)
			}
			s, err := client.Status(t.Context())
			if c.want == "" {
				if err != nil || s.Scope != "shop" {
					t.Errorf("got %+v, %v", s, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestClientShowsUserAndPassword(t *testing.T) {
	var user, password string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "you said %s by %s", password, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	c := config.Default()
	c.HTTP.Username, c.HTTP.PasswordFile = "ann", filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(c.HTTP.PasswordFile, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := newDaemonClient(c, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "you said *** by Basic ***") {
		t.Errorf("got %v", err)
	}
	if user != "ann" || password != "hunter2" {
		t.Errorf("the daemon saw %q and %q", user, password)
	}
}

func TestWhereTheDaemonListens(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8009": "http://127.0.0.1:8009",
		":8009":          "http://127.0.0.1:8009",
		"0.0.0.0:8009":   "http://127.0.0.1:8009",
		"[::]:8009":      "http://[::1]:8009",
		"[::1]:8009":     "http://[::1]:8009",
		"db1:8009":       "http://db1:8009",
	} {
		c := config.Default()
		c.HTTP.Listen = listen
		if got, err := localURL(c); err != nil || got != want {
			t.Errorf("%s: got %s, %v", listen, got, err)
		}
	}
	c := config.Default()
	c.HTTP.Listen = ""
	if _, err := localURL(c); err != errNoListener {
		t.Errorf("got %v", err)
	}
}

func TestStatusOfAnotherScopeIsRefused(t *testing.T) {
	c := config.Default()
	c.Scope = "other"
	if _, err := checkScope(shop(), c, nil); exitCode(err) != exitUnknown || !strings.Contains(err.Error(), `watches scope "shop"`) {
		t.Errorf("got %v", err)
	}
	if err := ofLedger(shop(), c); err == nil || !strings.Contains(err.Error(), `/slotkeeper/other in etcd names scope "shop"`) {
		t.Errorf("got %v", err)
	}
	c.Scope = "shop"
	if err := ofLedger(shop(), c); err != nil {
		t.Error(err)
	}
}

func TestADaemonThatHangsLeavesTheLedgerItsTime(t *testing.T) {
	c := config.Default()
	c.Scope = "shop"
	hangs := func(ctx context.Context, _ *config.Config) (status.Status, error) {
		<-ctx.Done()
		return status.Status{}, ctx.Err()
	}
	knows := func(ctx context.Context, _ *config.Config) (status.Status, error) { return shop(), ctx.Err() }
	s, err := askInTurn(t.Context(), 10*time.Millisecond, c, hangs, knows)
	if err != nil || s.Scope != "shop" {
		t.Errorf("got %+v, %v", s, err)
	}
}
