package static

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestTopologyIsTheConfiguredMembersWithoutALeader(t *testing.T) {
	// A password in the environment is allowed: it is not in the conninfo.
	t.Setenv("PGPASSWORD", "hunter2")
	want := []cluster.Member{
		{Name: "b", Conninfo: "host=/run/postgresql port=5433 connect_timeout=3 application_name=x", Tags: map[string]string{"nofailover": "true"}},
		{Name: "a", Conninfo: "postgresql://u@[::1]:5432,db2:5432/postgres?sslmode=disable&target_session_attrs=any"},
		{Name: "c", Conninfo: `host='127.0.0.1' port = 5434 user='O\'x' dbname='My "DB"'`},
	}
	s, err := New(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Topology(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cluster.Topology{Members: want}, got); diff != "" {
		t.Fatal(diff)
	}
	got.Members[0].Tags["nofailover"] = "false"
	again, _ := s.Topology(t.Context())
	if diff := cmp.Diff(want, again.Members); diff != "" {
		t.Fatalf("a reader changed the source: %s", diff)
	}
}

func TestWrongMembersAreRefused(t *testing.T) {
	good := "host=h"
	for name, tc := range map[string]struct {
		members []cluster.Member
		want    string
	}{
		"none":               {nil, "no members"},
		"no name":            {[]cluster.Member{{Conninfo: good}}, "member 1 has no name"},
		"name twice":         {[]cluster.Member{{Name: "a", Conninfo: good}, {Name: "a", Conninfo: "host=i"}}, `members 1 and 2 are both called "a"`},
		"conninfo twice":     {[]cluster.Member{{Name: "a", Conninfo: good}, {Name: "b", Conninfo: good}}, `members "a" and "b" have the same conninfo`},
		"empty conninfo":     {[]cluster.Member{{Name: "a", Conninfo: " \t"}}, `member 1 ("a"): conninfo is empty`},
		"no equals":          {[]cluster.Member{{Name: "a", Conninfo: "h:5432"}}, "cannot be read"},
		"open quote":         {[]cluster.Member{{Name: "a", Conninfo: "host='h"}}, "unterminated quoted string"},
		"port out of range":  {[]cluster.Member{{Name: "a", Conninfo: "host=h port=70000"}}, "invalid port"},
		"unknown keyword":    {[]cluster.Member{{Name: "a", Conninfo: "hots=h"}}, `keyword "hots" is not known here`},
		"other scheme":       {[]cluster.Member{{Name: "a", Conninfo: "mysql://h/db?x=y"}}, "URL of another kind"},
		"missing service":    {[]cluster.Member{{Name: "a", Conninfo: "service=no_such_service_anywhere"}}, "failed to read service"},
		"bad sslmode":        {[]cluster.Member{{Name: "a", Conninfo: "host=h sslmode=perhaps"}}, "sslmode is invalid"},
		"all wrong are told": {[]cluster.Member{{Conninfo: good}, {Name: "z", Conninfo: "x"}}, `member 2 ("z")`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(tc.members)
			if err == nil || s != nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want it to hold %q", err, tc.want)
			}
		})
	}
}

func TestPasswordsAreRefusedAndNeverRepeated(t *testing.T) {
	for name, conninfo := range map[string]string{
		"keyword":     "host=h password=hunter2",
		"word alone":  "hunter2",
		"last word":   "host=h hunter2",
		"quoted":      `host=h password = 'hunter2 \' x'`,
		"URL":         "postgresql://u:hunter2@h/db",
		"URL query":   "postgresql://h/db?password=hunter2",
		"sslpassword": "host=h sslpassword=hunter2",
		"broken":      "host=h password='hunter2",
		"broken URL":  "postgresql://u:hunter2@h:x/db",
		"other name":  "host=h passphrase=hunter2",
		"lost at":     "postgres://u:hunter2:5432/db@h",
	} {
		t.Run(name, func(t *testing.T) {
			err := Check([]cluster.Member{{Name: "a", Conninfo: conninfo}})
			if err == nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password stands in the error: %v", err)
			}
			if !strings.Contains(err.Error(), "passfile") {
				t.Errorf("no hint to a passfile: %v", err)
			}
		})
	}
}

func TestReplaceKeepsTheOldMembersWhenTheNewOnesAreWrong(t *testing.T) {
	s, err := New([]cluster.Member{{Name: "a", Conninfo: "host=h"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Replace([]cluster.Member{{Name: "", Conninfo: "host=i"}}); err == nil {
		t.Fatal("accepted")
	}
	got, _ := s.Topology(t.Context())
	if len(got.Members) != 1 || got.Members[0].Name != "a" {
		t.Fatalf("got %v", got.Members)
	}
	if err := s.Replace([]cluster.Member{{Name: "b", Conninfo: "host=i"}}); err != nil {
		t.Fatal(err)
	}
	got, _ = s.Topology(t.Context())
	if got.Members[0].Name != "b" {
		t.Fatalf("got %v", got.Members)
	}
}
