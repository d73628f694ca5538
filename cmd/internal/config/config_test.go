package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const minimal = "scope: shop\ncluster: {members: [{name: a, conninfo: host=h}]}\n"

const sample = `
scope: shop
name: node1
cluster:
  source: static
  members:
    - {name: a, conninfo: "host=127.0.0.1 port=54300"}
    - {name: b, conninfo: "host=127.0.0.1 port=54301"}
  patroni: {namespace: /service, rest: {username: "", password_file: "", ca_file: "", cert_file: "", key_file: ""}}
etcd:
  endpoints: []
  data_dir: ./data
  prefix: /slotkeeper
  lease_ttl: 10s
postgres: {user: postgres, dbname: postgres, passfile: "", sslmode: prefer, connect_timeout: 3s, query_timeout: 2s}
slots:
  include: [{name: "*"}]
  exclude: []
sync: {interval: 1s, min_gap: 20ms, cycle_timeout: 5s}
promotion: {policy: prefer, max_refusals: 3, deadline: 5s, max_proof_age: 5m}
protection: {max_hold_age: 1h, synchronized_standby_slots: observe, old_sessions: observe, hold_for_standbys: observe}
alerts: {webhooks: [], alertmanager: "", grace: 30s}
http: {listen: "127.0.0.1:8009", tls: {cert_file: "", key_file: ""}, username: "", password_file: ""}
log: {level: info, format: auto}
`

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSampleIsTheDefaults(t *testing.T) {
	file := write(t, sample)
	got, err := Load(Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.File = file
	want.Scope, want.Name = "shop", "node1"
	want.Cluster.Members = []cluster.Member{{Name: "a", Conninfo: "host=127.0.0.1 port=54300"}, {Name: "b", Conninfo: "host=127.0.0.1 port=54301"}}
	want.Slots.Exclude = []Match{}
	want.Etcd.DataDir = filepath.Join(filepath.Dir(file), "data")
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Error(diff)
	}
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                 {"", `s.yaml: scope: is missing; name the cluster`},
		"only a comment":        {"# nothing\n", `s.yaml: scope: is missing`},
		"a list":                {"- scope\n", "s.yaml:1: the file is not a mapping"},
		"a word":                {"scope\n", "s.yaml:1: the file is not a mapping"},
		"not YAML":              {"scope: [\n", "is not YAML: "},
		"control character":     {"scope: \x00\n", "is not YAML: "},
		"control of two bytes":  {"scope: \"a\\Nb\"\n", `holds the control character '\u0085'`},
		"two documents":         {minimal + "---\nscope: b\n", "holds several YAML documents"},
		"unknown key":           {minimal + "slot: {}\n", `s.yaml:3: slot: is not a key of the configuration; did you mean slots?`},
		"unknown key below":     {minimal + "sync: {intervall: 1s}\n", `s.yaml:3: sync.intervall: is not a key of the configuration; did you mean interval?`},
		"unknown far key":       {minimal + "sync: {speed: 1s}\n", "sync has the keys interval, min_gap, cycle_timeout"},
		"merge key":             {minimal + "<<: {}\n", "s.yaml:3: <<: is not a key"},
		"alias":                 {minimal + "name: &x n\nlog: {level: *x}\n", "name: uses a YAML anchor or alias"},
		"key twice":             {minimal + "scope: b\n", "s.yaml:3: scope: stands there twice, first in line 1; keep one"},
		"key twice below":       {minimal + "log:\n  level: info\n  level: warn\n", "s.yaml:5: log.level: stands there twice, first in line 4"},
		"section is a word":     {minimal + "sync: fast\n", "sync: is a single value, not a mapping; it has the keys interval"},
		"section is a list":     {minimal + "sync: [1s]\n", "sync: is a list, not a mapping"},
		"no value":              {minimal + "sync:\n", "sync: has no value; write one, or take the line away"},
		"list for text":         {minimal + "name: [a]\n", "name: is a list; write a single value"},
		"number for text":       {minimal + "name: 010\n", `name: 010 is a number, not text; if the text is meant, write it in quotes: "010"`},
		"boolean for text":      {minimal + "name: true\n", "name: true is a boolean, not text"},
		"duration without unit": {minimal + "sync: {interval: 1}\n", `sync.interval: "1" is not a duration; write a number and a unit, such as 500ms`},
		"duration with a word":  {minimal + "sync: {interval: 1 second}\n", `"1 second" is not a duration`},
		"zero interval":         {minimal + "sync: {interval: 0s}\n", `"0s" is out of range; write a duration from 10ms to 1h`},
		"negative interval":     {minimal + "sync: {interval: -1s}\n", `"-1s" is out of range`},
		"negative gap":          {minimal + "sync: {min_gap: -20ms}\n", `"-20ms" is out of range`},
		"endless duration":      {minimal + "sync: {interval: 1e400s}\n", "is not a duration"},
		"gap over interval":     {minimal + "sync: {interval: 1s, min_gap: 2s}\n", "s.yaml:3: sync.min_gap: 2s is longer than sync.interval (1s); make it at most that long"},
		"cycle under query":     {minimal + "sync: {cycle_timeout: 2s}\n", "is not longer than postgres.query_timeout (2s)"},
		"cycle under connect":   {minimal + "postgres: {connect_timeout: 5s}\n", "is not longer than postgres.connect_timeout (5s)"},
		"short lease":           {minimal + "etcd: {lease_ttl: 1s}\n", `etcd.lease_ttl: "1s" is out of range; write a duration from 2s to 10m`},
		"half a second":         {minimal + "etcd: {lease_ttl: 2500ms}\n", `"2500ms" is too fine; write a multiple of 1s`},
		"no data_dir":           {minimal + "etcd: {data_dir: \"\"}\n", "etcd.data_dir: is empty"},
		"bad endpoint":          {minimal + "etcd: {endpoints: [localhost]}\n", `"localhost" is not an etcd endpoint; write host:port`},
		"endpoint with path":    {minimal + "etcd: {endpoints: [\"http://h:1/v3\"]}\n", "has more than host and port"},
		"endpoint twice":        {minimal + "etcd: {endpoints: [\"h:1\", \"h:1\"]}\n", `"h:1" stands there twice`},
		"endpoints no list":     {minimal + "etcd: {endpoints: \"h:1\"}\n", "etcd.endpoints: is a single value, not a list"},
		"etcd user alone":       {minimal + "etcd: {endpoints: [\"h:1\"], username: u}\n", "etcd.username: is given without etcd.password_file; give both or none"},
		"etcd user embedded":    {minimal + "etcd: {username: u, password_file: f}\n", "the embedded server has no users"},
		"prefix":                {minimal + "etcd: {prefix: slotkeeper/}\n", `"slotkeeper/" is not a prefix of etcd keys`},
		"sslmode":               {minimal + "postgres: {sslmode: on}\n", "postgres.sslmode"},
		"policy":                {minimal + "promotion: {policy: stric}\n", `"stric" is not known; write one of prefer, strict, observe`},
		"refusals":              {minimal + "promotion: {max_refusals: 1.5}\n", `"1.5" is no such number; write a whole number from 0 to 100`},
		"listen":                {minimal + "http: {listen: 8009}\n", "http.listen: 8009 is a number, not text"},
		"listen no port":        {minimal + "http: {listen: localhost}\n", `"localhost" is not an address to listen on`},
		"listen bad port":       {minimal + "http: {listen: \"h:99999\"}\n", "has no port from 0 to 65535"},
		"tls key alone":         {minimal + "http: {tls: {key_file: k}}\n", "http.tls.key_file: is given without http.tls.cert_file"},
		"log level":             {minimal + "log: {level: loud}\n", `"loud" is not known; write one of debug, info, warn, error`},
		"include nothing":       {minimal + "slots: {include: []}\n", "slots.include: is empty, so no slot would be kept"},
		"include all empty":     {minimal + "slots: {include: [{}]}\n", "slots.include[0]: matches nothing in particular"},
		"include words":         {minimal + "slots: {include: [cdc]}\n", "slots.include[0]: is a single value, not a mapping; write {name: ..., database: ..., plugin: ...}"},
		"bad glob":              {minimal + "slots: {include: [{name: \"[\"}]}\n", `slots.include[0].name: "[" is not a glob`},
		"unknown match":         {minimal + "slots: {include: [{nam: x}]}\n", "slots.include[0].nam: is not a key of the configuration; did you mean name?"},
		"no members":            {"scope: shop\n", "cluster.members: is empty; name the nodes"},
		"member without name":   {"scope: s\ncluster: {members: [{conninfo: host=h}]}\n", "cluster.members[0].name: is empty"},
		"member with blank":     {"scope: s\ncluster: {members: [{name: a b, conninfo: host=h}]}\n", `"a b" cannot be a name here`},
		"member no conninfo":    {"scope: s\ncluster: {members: [{name: a}]}\n", "cluster.members[0]: conninfo is empty"},
		"member twice":          {"scope: s\ncluster: {members: [{name: a, conninfo: host=h}, {name: a, conninfo: host=i}]}\n", `"a" is the name of two members`},
		"conninfo twice":        {"scope: s\ncluster: {members: [{name: a, conninfo: host=h}, {name: b, conninfo: host=h}]}\n", "cluster.members[1].conninfo: is the same as that of a"},
		"conninfo is rubbish":   {"scope: s\ncluster: {members: [{name: a, conninfo: \"host=h port\"}]}\n", "conninfo \"host=h port\" cannot be read"},
		"conninfo open quote":   {"scope: s\ncluster: {members: [{name: a, conninfo: \"host='h\"}]}\n", "cannot be read"},
		"patroni, no etcd":      {"scope: s\ncluster: {source: patroni}\n", "etcd.endpoints: is empty, and cluster.source is patroni; name the etcd servers that Patroni uses"},
		"patroni and members":   {"scope: s\netcd: {endpoints: [\"h:1\"]}\ncluster: {source: patroni, members: [{name: a, conninfo: host=h}]}\n", "cluster.members: is given, and cluster.source is patroni"},
		"prefix of Patroni's":   {"scope: s\netcd: {endpoints: [\"h:1\"], prefix: /service}\ncluster: {source: patroni}\n", "etcd.prefix: is Patroni's namespace too"},
		"scope with a slash":    {"scope: a/b\n", `"a/b" cannot be a name here`},
		"scope turned around":   {"scope: \"a\\u202eb\"\n", `"a\u202eb" cannot be a name here`},
		"key with a newline":    {minimal + "\"a\\nb\\e[31m\": 1\n", `s.yaml:3: "a\nb\x1b[31m": is not a key`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Options{File: write(t, c.text)})
			if !IsError(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant an error with %s", err, c.want)
			}
		})
	}
}

// A wrong file, such as a log, has a mistake in each line, and lines without end.
func TestMistakesAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"many":       minimal + strings.Repeat("? x\n", 1000),
		"long key":   minimal + `"` + strings.Repeat("k", 100000) + `": 1`,
		"long value": "scope: " + strings.Repeat("k", 100000),
	} {
		_, err := Load(Options{File: write(t, text)})
		if !IsError(err) || len(err.Error()) > 20*longest {
			t.Errorf("%s: %d bytes of error: %.300v", name, len(err.Error()), err)
		}
	}
}

func TestAllMistakesAreNamedAtOnce(t *testing.T) {
	_, err := Load(Options{File: write(t, "scope: a/b\nsync: {interval: x}\nlog: {level: loud}\n"), Environ: []string{"SLOTKEEPER_LOG_FORMAT=xml"}})
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 4 {
		t.Fatalf("want four problems, got %v", err)
	}
}

func TestPasswordsAreRefusedAndNeverRepeated(t *testing.T) {
	for name, text := range map[string]string{
		"keyword":      "cluster: {members: [{name: a, conninfo: \"host=h password=hunter2\"}]}",
		"quoted":       "cluster: {members: [{name: a, conninfo: \"host=h password = 'hunter2 \\\\' x'\"}]}",
		"URL":          "cluster: {members: [{name: a, conninfo: \"postgresql://u:hunter2@h/db\"}]}",
		"URL query":    "cluster: {members: [{name: a, conninfo: \"postgresql://h/db?password=hunter2\"}]}",
		"broken":       "cluster: {members: [{name: a, conninfo: \"host=h password='hunter2\"}]}",
		"broken URL":   "cluster: {members: [{name: a, conninfo: \"postgresql://u:hunter2@h:x/db\"}]}",
		"sslpassword":  "cluster: {members: [{name: a, conninfo: \"host=h sslpassword=hunter2\"}]}",
		"own key":      "postgres: {password: hunter2}",
		"member key":   "cluster: {members: [{name: a, conninfo: host=h, password: hunter2}]}",
		"etcd URL":     "etcd: {endpoints: [\"http://u:hunter2@h:1\"]}",
		"etcd rubbish": "etcd: {endpoints: [\"u:hunter2@h:1:1\"]}",
		"etcd anchor":  "etcd: {endpoints: [\"http://h:1#hunter2\"]}",
		"bare word":    "alerts: {webhooks: [hunter2]}",
		"other name":   "cluster: {members: [{name: a, conninfo: \"host=h pwd=hunter2\"}]}",
		"webhook":      "alerts: {webhooks: [\"ftp://h/hunter2\"]}",
		"manager":      "alerts: {alertmanager: \"ftp://u:hunter2@h/\"}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Options{File: write(t, "scope: s\n"+text+"\n")})
			if !IsError(err) {
				t.Fatalf("want a configuration error, got %v", err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password stands in the error: %v", err)
			}
		})
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	l, err := Load(Options{File: write(t, minimal+"alerts: {webhooks: [\"https://hooks.example/T1/hunter2\"], alertmanager: \"http://u:hunter2@am:9093\"}\n")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.YAML(true, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "hunter2") || !strings.Contains(string(b), "https://hooks.example/***") {
		t.Errorf("got\n%s", b)
	}
}

func TestOrderOfSources(t *testing.T) {
	file := write(t, minimal+"log: {level: warn, format: json}\n")
	l, err := Load(Options{
		File:    file,
		Environ: []string{"SLOTKEEPER_LOG_LEVEL=error", "SLOTKEEPER_HTTP_LISTEN=", "SLOTKEEPER_ETCD_ENDPOINTS=h:1, i:1", "SLOTKEEPER_SYNC_INTERVAL=2s"},
		Flags:   map[string]string{"log.level": "debug"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range l.Settings() {
		got[s.Key] = s.Text() + " / " + s.Origin
	}
	for key, want := range map[string]string{
		"log.level":      "debug / flag --log-level",
		"log.format":     "json / file " + file + ":3",
		"http.listen":    " / environment SLOTKEEPER_HTTP_LISTEN",
		"etcd.endpoints": `["h:1","i:1"] / environment SLOTKEEPER_ETCD_ENDPOINTS`,
		"sync.interval":  "2s / environment SLOTKEEPER_SYNC_INTERVAL",
		"sync.min_gap":   "20ms / default",
	} {
		if got[key] != want {
			t.Errorf("%s: got %q, want %q", key, got[key], want)
		}
	}
	if l.Sync.Interval != 2*time.Second || l.Log.Level != "debug" {
		t.Errorf("the values were not taken: %+v %+v", l.Sync, l.Log)
	}
}

func TestVariablesThatAreNoText(t *testing.T) {
	_, err := Load(Options{File: write(t, minimal), Environ: []string{"SLOTKEEPER_NAME=\xff", "SLOTKEEPER_POSTGRES_USER=\xff"}})
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestSettingsWithoutEffectAreWarnedOf(t *testing.T) {
	l, err := Load(Options{File: write(t, minimal+"alerts: {webhooks: [\"https://h/hunter2\"]}\npromotion: {policy: strict, max_refusals: 3}\nprotection: {hold_for_standbys: manage}\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"protection.hold_for_standbys (s.yaml:5) has no effect in this version",
		"alerts.webhooks (s.yaml:3) has no effect in this version",
	}
	for i, w := range l.Warnings {
		l.Warnings[i] = strings.ReplaceAll(w, filepath.Dir(l.File)+"/", "")
	}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownVariablesAreWarnedOf(t *testing.T) {
	l, err := Load(Options{File: write(t, minimal), Environ: []string{"SLOTKEEPER_LOGLEVEL=debug", "SLOTKEEPER_SERVICE_HOST=10.0.0.1", "SLOTKEEPER_PORT=tcp://x"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "SLOTKEEPER_LOGLEVEL") {
		t.Errorf("got %q", l.Warnings)
	}
}

func TestWhatIsShownCanBeReadAgain(t *testing.T) {
	first, err := Load(Options{File: write(t, sample)})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []bool{false, true} {
		text, err := first.YAML(true, doc)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Load(Options{File: write(t, string(text))})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		second.File = first.File
		if diff := cmp.Diff(first.Config, second.Config); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEachKeyIsDocumentedAndNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys {
		env := k.env(Default())
		if len(k.doc) < 30 || seen[k.path] || (env != "" && seen[env]) {
			t.Errorf("%s: no documentation, or not unique", k.path)
		}
		seen[k.path], seen[env] = true, true
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 4096))
		}
	}()
	defer w.Close()
	for file, want := range map[string]string{
		fmt.Sprintf("/dev/fd/%d", r.Fd()): "and no configuration needs as many",
		filepath.Join(dir, "none"):        "no such file or directory",
		dir:                               "it is no regular file",
		big:                               "and no configuration needs as many",
	} {
		if _, err := Load(Options{File: file}); !IsError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", file, err)
		}
	}
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if got, err := ReadPassword("http.password_file", file("good", "hunter2\nmore\n", 0o600)); err != nil || got != "hunter2" {
		t.Errorf("got %q, %v", got, err)
	}
	for name, c := range map[string]struct {
		file, want string
	}{
		"readable by all": {file("open", "hunter2\n", 0o644), "chmod 0600 it"},
		"empty":           {file("empty", "\n", 0o600), "the first line of"},
		"missing":         {filepath.Join(dir, "none"), "no such file"},
		"a folder":        {dir, "is no regular file"},
	} {
		_, err := ReadPassword("http.password_file", c.file)
		if !IsError(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	c := Default()
	c.Postgres.Passfile = filepath.Join(dir, "open")
	if err := c.CheckFiles(); !IsError(err) || !strings.Contains(err.Error(), "postgres.passfile") {
		t.Errorf("CheckFiles: got %v", err)
	}
}
