package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster/patroni"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

// recorded is a lookout on an etcd of its own, with the record of run "me" in it. The
// leader a has its REST API at url.
func recorded(t *testing.T, url string) *lookout {
	t.Helper()
	c := config.Default()
	c.Scope, c.Etcd.DataDir = "shop", t.TempDir()
	st, err := openStore(t.Context(), c, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	api, err := patroni.NewREST(patroni.RESTOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := newLookout(c, st, api)
	if err := l.write(t.Context(), switchover.Record{ID: "me", Leader: "a", Candidate: "b", SystemID: 7, Timeline: 1}); err != nil {
		t.Fatal(err)
	}
	l.view.Members = []patroni.Member{{Name: "a", API: url}}
	return l
}

// Patroni takes the request and never answers: the run must end all the same.
func TestPatroniNeverAnswers(t *testing.T) {
	taken, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(taken)
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	l := recorded(t, server.URL)
	if err := l.ask(context.Background(), "me"); err != nil {
		t.Fatal(err)
	}
	<-taken
	closed := make(chan struct{})
	go func() { l.close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("it waits for Patroni's answer")
	}
	if l.known.Request.Answered {
		t.Errorf("nobody has answered: %+v", l.known.Request)
	}
}
