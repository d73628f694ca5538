package main

import (
	"slices"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
)

func TestWhatAReloadTakes(t *testing.T) {
	old, fresh := config.Default(), config.Default()
	old.Scope = "shop"
	fresh.Scope, fresh.Sync.Interval, fresh.Postgres.QueryTimeout = "other", 3*time.Second, time.Hour
	fresh.Etcd.Endpoints, fresh.HTTP.Listen = []string{"h:1"}, ""
	c := reloadable(old, fresh)
	if c.Interval != 3*time.Second || c.Policy.Scope != "shop" || c.ReadTimeout > time.Minute {
		t.Errorf("got %+v", c)
	}
	if got := needRestart(old, fresh); !slices.Equal(got, []string{"scope", "etcd", "postgres", "http"}) {
		t.Errorf("got %v", got)
	}
	if got := needRestart(old, old); got != nil {
		t.Errorf("got %v", got)
	}
}
