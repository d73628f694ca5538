package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestConninfoGoesBeforeOptions(t *testing.T) {
	t.Setenv("PGUSER", "environment")
	t.Setenv("PGDATABASE", "environment")
	full := Options{User: "opt user", DBName: "opt+db"}
	for _, tc := range []struct {
		name, conninfo string
		options        Options
		user, database string
	}{
		{"options where the conninfo has none", "host=h", full, "opt user", "opt+db"},
		{"environment where neither has", "host=h", Options{}, "environment", "environment"},
		{"the conninfo's user", "host=h user=own", full, "own", "opt+db"},
		{"the conninfo's database", "host=h dbname='own db'", full, "opt user", "own db"},
		{"an empty database is none", "host=h dbname=''", full, "opt user", "opt+db"},
		{"quotes and backslashes", "host=h", Options{User: `a'b\c`, DBName: `My "DB"`}, `a'b\c`, `My "DB"`},
		{"URL without either", "postgres://h:1", full, "opt user", "opt+db"},
		{"URL with a path", "postgresql://h:1/own", full, "opt user", "own"},
		{"URL with a user", "postgres://own@h:1/", full, "own", "opt+db"},
		{"URL with a user as a parameter", "postgres://h:1/?user=own", full, "own", "opt+db"},
		{"URL with a database as a parameter", "postgres://h:1?dbname=own&sslmode=disable", full, "opt user", "own"},
		{"URL of several hosts", "postgres://h:1,g:2/own?sslmode=disable", full, "opt user", "own"},
		{"URL with an empty query", "postgres://h:1/?", full, "opt user", "opt+db"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := tc.options.withDefaults().config(cluster.Member{Name: "a", Conninfo: tc.conninfo})
			if err != nil {
				t.Fatal(err)
			}
			if c.User != tc.user || c.Database != tc.database {
				t.Errorf("user %q, database %q, want %q, %q", c.User, c.Database, tc.user, tc.database)
			}
		})
	}
}

func TestServiceGoesBeforeOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "services")
	if err := os.WriteFile(file, []byte("[shop]\nuser=from service\ndbname=of service\nhost=h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", file)
	for _, conninfo := range []string{"service=shop", "postgres:///?service=shop"} {
		c, err := Options{User: "u", DBName: "d"}.withDefaults().config(cluster.Member{Name: "a", Conninfo: conninfo})
		if err != nil {
			t.Fatal(err)
		}
		if c.User != "from service" || c.Database != "of service" {
			t.Errorf("%s gives user %q, database %q; want the service's", conninfo, c.User, c.Database)
		}
	}
}

func TestShorterConnectTimeoutStands(t *testing.T) {
	for _, tc := range []struct {
		conninfo string
		want     time.Duration
	}{
		{"host=h", 5 * time.Second}, {"host=h connect_timeout=2", 2 * time.Second},
		{"host=h connect_timeout=0", 5 * time.Second}, {"host=h connect_timeout=60", 5 * time.Second},
	} {
		c, err := Options{ConnectTimeout: 5 * time.Second}.withDefaults().config(cluster.Member{Name: "a", Conninfo: tc.conninfo})
		if err != nil {
			t.Fatal(err)
		}
		if c.ConnectTimeout != tc.want {
			t.Errorf("%s: %s, want %s", tc.conninfo, c.ConnectTimeout, tc.want)
		}
	}
}

func TestUnreadablePassfileIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := New(cluster.Member{Name: "a", Conninfo: "host=h"}, Options{Passfile: missing})
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("New gave %v, want the node and the file", err)
	}
}

func TestEmptyConninfoIsRefused(t *testing.T) {
	if _, err := New(cluster.Member{Name: "a", Conninfo: " "}, Options{}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("New gave %v, want an error that names the node", err)
	}
}

func TestSameVersion(t *testing.T) {
	for _, tc := range []struct {
		script, library string
		want            bool
	}{
		{"1.0", "1.0", true}, {"1.0", "1.0.2", true}, {"1.0", "1.1", false}, {"1.1", "1.10", false}, {"1.1", "1.0", false}, {"1.0", "", false},
	} {
		if got := sameVersion(tc.script, tc.library); got != tc.want {
			t.Errorf("sameVersion(%q, %q) = %v", tc.script, tc.library, got)
		}
	}
}
