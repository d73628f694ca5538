package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster"
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

// What Patroni has answered stays, when what was seen until the old primary stopped
// comes after it from a run that did not know of the answer yet.
func TestAnswerIsKept(t *testing.T) {
	l := recorded(t, "")
	defer l.close()
	older := l.known.Record.Value.V
	l.keep(t.Context(), switchover.Request{Status: http.StatusOK, Text: "Successfully switched over"})
	older.Last = cluster.Some(begun)
	l.amend(t.Context(), older)
	if r := l.known.Record.Value.V; r.Answer.V.Status != http.StatusOK || !r.Last.V.Equal(begun) {
		t.Errorf("%+v", r)
	}
}

// A signal ends a question that nobody answers.
func TestInterruptedQuestion(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	silent, typing := io.Pipe()
	defer typing.Close()
	asked := make(chan struct{})
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetIn(silent)
	cmd.SetErr(writer(func(p []byte) {
		if strings.Contains(string(p), "switch over?") {
			close(asked)
		}
	}))
	answer := make(chan bool)
	go func() { answer <- agreed(cmd, "switch over?") }()
	<-asked
	interrupt()
	select {
	case yes := <-answer:
		if yes {
			t.Error("nobody has agreed")
		}
	case <-time.After(time.Minute):
		t.Error("it waits for an answer")
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
