package patroni

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestSamplesOfEachVersion(t *testing.T) {
	for version, want := range map[string]struct {
		leader  string
		primary string
		running string
		config  Config
	}{
		"3.0.2": {"node1", "node1", "node1 node3", Config{TTL: 20 * time.Second, LoopWait: time.Second, RetryTimeout: 3 * time.Second, MaximumLag: 1 << 20, UseSlots: true, Feedback: cluster.Some(true)}},
		"4.0.7": {"node1", "node1", "node1 node2 node3", Config{TTL: 20 * time.Second, LoopWait: 5 * time.Second, RetryTimeout: 10 * time.Second, MaximumLag: 1 << 20, UseSlots: true, Feedback: cluster.Some(true), Paused: true, Synchronous: true, Quorum: true}},
		"4.1.5": {"node2", "node2", "node1 node2 node3", Config{TTL: 20 * time.Second, LoopWait: time.Second, RetryTimeout: 3 * time.Second, MaximumLag: 1 << 20, Feedback: cluster.Some(false), Failsafe: true}},
	} {
		t.Run(version, func(t *testing.T) {
			v := Parse(keysOf(samples[version]))
			if len(v.Problems) != 0 || v.Leader != cluster.Some(want.leader) || len(v.Members) != 3 || v.Revision != 7 {
				t.Fatalf("%+v", v)
			}
			var primary, running []string
			for _, m := range v.Members {
				if m.Role == Primary {
					primary = append(primary, m.Name)
				}
				if m.Running {
					running = append(running, m.Name)
				}
				if m.Conninfo() == "" || !strings.HasPrefix(m.API, "http://127.0.0.1:") || strings.Contains(m.API, "patroni") || m.Version != version {
					t.Errorf("%+v", m)
				}
			}
			if strings.Join(primary, " ") != want.primary || strings.Join(running, " ") != want.running {
				t.Errorf("primary %v, running %v", primary, running)
			}
			v.Config.Slots = cluster.SlotRules{}
			if diff := cmp.Diff(want.config, v.Config); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheOtherKeysSay(t *testing.T) {
	old := Parse(keysOf(samples["3.0.2"]))
	if old.Failover.OK || old.SystemID != "7713838868739053938" || old.Status.Optime != 67109760 {
		t.Errorf("%+v", old)
	}
	want := []Fork{
		{Timeline: 1, LSN: 67109256, Reason: "no recovery target specified", At: "2026-11-30T05:54:51.510363+00:00", Leader: "node2"},
		{Timeline: 2, LSN: 67109480, Reason: "no recovery target specified", At: "2026-11-30T05:55:00.830363+00:00", Leader: "node1"},
	}
	if diff := cmp.Diff(want, old.History); diff != "" {
		t.Error(diff)
	}
	v := Parse(keysOf(samples["4.0.7"]))
	if v.Failover != cluster.Some(Failover{Leader: "node1", Candidate: "node2"}) || v.Sync.Quorum != 1 || !v.Sync.Synchronous("NODE2") || v.Sync.Synchronous("node4") {
		t.Errorf("%+v %+v", v.Failover, v.Sync)
	}
	node3, _ := v.Member("node3")
	if !node3.Tags.NoFailover || node3.Tags.FailoverPriority != 0 || node3.Tags.ReplicateFrom != "node2" {
		t.Errorf("%+v", node3.Tags)
	}
	if _, away := v.Config.Slots.Members["gone"]; !away || v.Config.Slots.SparesFailover {
		t.Errorf("%+v", v.Config.Slots)
	}
	newest := Parse(keysOf(samples["4.1.5"]))
	node1, _ := newest.Member("node1")
	if node1.Replay != cluster.Some(cluster.LSN(83886160)) || node1.Receive != cluster.Some(cluster.LSN(83886176)) || !newest.Config.Slots.SparesFailover || newest.Failsafe["node2"] != "http://127.0.0.1:13008" {
		t.Errorf("%+v %+v", node1, newest)
	}
}

func TestTopology(t *testing.T) {
	topology := Parse(keysOf(samples["4.0.7"])).Topology()
	want := []cluster.Member{
		{Name: "node1", Conninfo: "host=127.0.0.1 port=15533"},
		{Name: "node2", Conninfo: "host=127.0.0.1 port=30437"},
		{Name: "node3", Conninfo: "host=127.0.0.1 port=30206", Tags: map[string]string{"nofailover": "true", "failover_priority": "0", "replicatefrom": "node2"}},
	}
	if diff := cmp.Diff(want, topology.Members); diff != "" {
		t.Error(diff)
	}
	if topology.Leader.V != "node1" || !topology.Manager.Paused || topology.Manager.TTL != 20*time.Second {
		t.Errorf("%+v", topology)
	}
	none := Parse(with("4.0.7", map[string]string{"leader": ""})).Topology()
	if none.Leader.OK || none.Manager == nil {
		t.Errorf("%+v", none)
	}
}

func TestBadKeysAreNamedAndSpoilNoOther(t *testing.T) {
	for name, c := range map[string]struct{ key, value, want string }{
		"member cut off":         {"members/node3", `{"conn_url":"postgres://h`, "it is no JSON"},
		"member a list":          {"members/node3", `[1]`, "it is a list, not an object"},
		"member empty":           {"members/node3", ` `, "it is empty"},
		"member null":            {"members/node3", `null`, "it is null, not an object"},
		"member twice":           {"members/node3", `{} {}`, "something stands behind"},
		"member not UTF-8":       {"members/node3", "{\"a\":\"\xff\"}", "not UTF-8"},
		"member without URL":     {"members/node3", `{"role":"replica"}`, "says no conn_url"},
		"URL a number":           {"members/node3", `{"conn_url":5}`, "says no conn_url"},
		"URL without host":       {"members/node3", `{"conn_url":"postgres://:5432/x"}`, "names no host"},
		"URL of several":         {"members/node3", `{"conn_url":"postgres://a,b:5432/x"}`, "several hosts"},
		"URL of something else":  {"members/node3", `{"conn_url":"http://h:5432/"}`, "does not begin with postgres://"},
		"URL with port 0":        {"members/node3", `{"conn_url":"postgres://h:0/"}`, "names port 0"},
		"URL with a large port":  {"members/node3", `{"conn_url":"postgres://h:99999/"}`, "names port 99999"},
		"URL with a secret":      {"members/node3", `{"conn_url":"postgres://u:hunter2@h:x/"}`, "is no URL"},
		"config cut off":         {"config", `{"ttl":`, "it is no JSON"},
		"config a text":          {"config", `"x"`, "it is a text"},
		"postgresql a list":      {"config", `{"postgresql":[1]}`, "postgresql in it is a list"},
		"leader empty":           {"leader", "", ""},
		"leader of two lines":    {"leader", "a\nb", "it is no name"},
		"leader without an end":  {"leader", strings.Repeat("x", 100000), "it has 100000 bytes"},
		"sync rubbish":           {"sync", `rubbish`, "it is no JSON"},
		"failover rubbish":       {"failover", `{"leader":`, "it is no JSON"},
		"failover a list":        {"failover", `[]`, "it is a list"},
		"history an object":      {"history", `{}`, "not a list"},
		"history of texts":       {"history", `["x"]`, "line 1 of it"},
		"history beyond numbers": {"history", `[[99999999999, 1]]`, "line 1 of it"},
		"status a text":          {"status", `"x"`, "not an object"},
		"failsafe a list":        {"failsafe", `[]`, "not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := with("4.0.7", map[string]string{c.key: c.value})
			if c.value == "" {
				keys.Values[c.key] = nil
				c.want = "it is empty"
			}
			v := Parse(keys)
			if len(v.Problems) != 1 || v.Problems[0].Key != c.key || !strings.Contains(v.Problems[0].Text, c.want) || strings.Contains(v.Problems[0].Text, "hunter2") {
				t.Fatalf("%+v", v.Problems)
			}
			if len(v.Members) != 3 || v.Members[0].Unusable != "" {
				t.Errorf("members %+v", v.Members)
			}
			if strings.HasPrefix(c.key, "members/") && v.Topology().Members[2].Unusable == "" {
				t.Error("the member counts as one that can be reached")
			}
			if c.key == "config" && v.Config.Slots.Unusable == "" && !strings.Contains(c.value, "postgresql") {
				t.Error("a configuration that nobody can read covers slots")
			}
		})
	}
}

func TestKeysThatAreNone(t *testing.T) {
	v := Parse(cluster.Keys{})
	if len(v.Problems) != 0 || v.Leader.OK || v.Topology().Manager == nil || v.Config.Slots.Unusable == "" {
		t.Errorf("%+v", v)
	}
	v = Parse(with("4.0.7", map[string]string{"members/a/b": "{", "members/": "{", "unknown": "{", "0/leader": "x"}))
	if len(v.Problems) != 0 || len(v.Members) != 3 {
		t.Errorf("%+v", v)
	}
}

func TestMemberAddresses(t *testing.T) {
	for value, want := range map[string]string{
		`{"conn_url":"postgres://10.0.0.1:5433/postgres"}`:              "host=10.0.0.1 port=5433",
		`{"conn_url":"postgresql://db-1.example.org/postgres"}`:         "host=db-1.example.org port=5432",
		`{"conn_url":"postgres://[fe80::1]:5433/postgres"}`:             "host=fe80::1 port=5433",
		`{"conn_url":"postgres://u:hunter2@h:1/postgres"}`:              "host=h port=1",
		`{"conn_url":"postgres://h'x:1/postgres"}`:                      `host='h\'x' port=1`,
		`postgres://u:hunter2@h:1/postgres?application_name=http://h:8`: "host=h port=1",
	} {
		m := parseMember("m", []byte(value))
		if m.Conninfo() != want || m.Unusable != "" {
			t.Errorf("%s: %q %s", value, m.Conninfo(), m.Unusable)
		}
	}
	if m := parseMember("m", []byte(`{"conn_url":"postgres://h/","api_url":"https://u:hunter2@[::1]:8008/patroni"}`)); m.API != "https://[::1]:8008" {
		t.Error(m.API)
	}
}

func TestTagsAsPatroniTakesThem(t *testing.T) {
	for text, want := range map[string]Tags{
		`{}`:                      {FailoverPriority: 1},
		`{"nofailover":true}`:     {NoFailover: true},
		`{"nofailover":"false"}`:  {NoFailover: true}, // a text that is not empty is true in Python
		`{"failover_priority":0}`: {NoFailover: true},
		`{"failover_priority":"2","nofailover":false}`:     {FailoverPriority: 2},
		`{"failover_priority":-1}`:                         {NoFailover: true, FailoverPriority: -1},
		`{"nosync":true,"nostream":"on"}`:                  {NoSync: true, NoStream: true, FailoverPriority: 1},
		`{"sync_priority":0,"replicatefrom":"n2"}`:         {NoSync: true, ReplicateFrom: "n2", FailoverPriority: 1},
		`{"replicatefrom":5,"nostream":"perhaps","x":[1]}`: {FailoverPriority: 1},
	} {
		o, err := parseObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := parseTags(o, true)
		got.All = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	if got := parseTags(object{"failover_priority": "0"}, false); got.NoFailover {
		t.Error("3.0 knows no failover_priority")
	}
}

func TestSlotNames(t *testing.T) {
	long := strings.Repeat("n", 80)
	for member, want := range map[string]string{
		"node1": "node1", "Node-1.example": "node_1_example", "a b": "au0032b", "ü": "u0252", "北": "u21271", "😀": "u128512",
		"a_b": "a_b", long: long[:63], "": "",
	} {
		if got := SlotName(member); got != want {
			t.Errorf("%q: %q, want %q", member, got, want)
		}
	}
	shared := memberSlots([]Member{{Name: "n.1"}, {Name: "n-1"}, {Name: "n2", Tags: Tags{NoStream: true}}})
	if diff := cmp.Diff(map[string][]string{"n_1": {"n-1", "n.1"}}, shared); diff != "" {
		t.Error(diff)
	}
}

func TestC26RulesOfEveryShape(t *testing.T) {
	some := cluster.Some[string]
	for text, want := range map[string]cluster.SlotRules{
		`{}`:                                  {},
		`{"ignore_slots":null}`:               {},
		`{"ignore_slots":[]}`:                 {},
		`{"ignore_slots":{}}`:                 {},
		`{"ignore_slots":""}`:                 {},
		`{"ignore_slots":{"type":"logical"}}`: {Unusable: "ignore_slots is a mapping, not a list"},
		`{"ignore_slots":"logical"}`:          {Unusable: "ignore_slots is a text, not a list"},
		`{"ignore_slots":true}`:               {Unusable: "ignore_slots is a boolean, not a list"},
		`{"ignore_slots":["logical"]}`:        {Ignore: []cluster.SlotMatcher{{Unusable: "entry 1 of ignore_slots is a text, not a mapping"}}},
		`{"ignore_slots":[{}]}`:               {Ignore: []cluster.SlotMatcher{{}}},
		`{"ignore_slots":[{"name":"a","type":"logical","database":"d","plugin":"p"}]}`: {Ignore: []cluster.SlotMatcher{{Name: some("a"), Type: some("logical"), Database: some("d"), Plugin: some("p")}}},
		`{"ignore_slots":[{"name":null,"type":"","database":0,"plugin":[]}]}`:          {Ignore: []cluster.SlotMatcher{{}}},
		`{"ignore_slots":[{"name":"","type":5}]}`:                                      {Ignore: []cluster.SlotMatcher{{Name: some(""), Type: some("\x005")}}},
		`{"postgresql":{"ignore_slots":[{"type":"logical"}]}}`:                         {Misplaced: true},
		`{"slots":{"a":{"type":"logical","database":"d","plugin":"p"},"b":null,"c":{"type":"physical"},"d":5,"e":{"type":"logical"},"f":{"database":"d","plugin":"p"}}}`: {
			Permanent: map[string]cluster.PermanentSlot{
				"a": {Kind: cluster.Logical, Database: "d", Plugin: "p"}, "b": {Kind: cluster.Physical}, "c": {Kind: cluster.Physical}, "d": {}, "e": {},
				"f": {Kind: cluster.Logical, Database: "d", Plugin: "p"},
			}},
		`{"permanent_slots":{"a":null},"slots":{"b":null}}`: {Permanent: map[string]cluster.PermanentSlot{"a": {Kind: cluster.Physical}}},
		`{"slots":[1]}`: {},
	} {
		c, err := parseConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Slots.Permanent) == 0 {
			c.Slots.Permanent = nil
		}
		if diff := cmp.Diff(want, c.Slots); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestFolder(t *testing.T) {
	for _, c := range [][3]string{{"/service", "s", "/service/s"}, {"/service/", "s", "/service/s"}, {"a//b", "s", "/a/b/s"}, {"", "s", "/s"}, {"/", "s", "/s"}} {
		if got := Folder(c[0], c[1]); got != c[2] {
			t.Errorf("%q: %q", c[0], got)
		}
	}
}

func TestStandbyClusters(t *testing.T) {
	for text, want := range map[string]bool{
		`{"standby_cluster":{"host":"h","port":5432}}`: true, `{"standby_cluster":{"restore_command":"x"}}`: true,
		`{"standby_cluster":{}}`: false, `{"standby_cluster":null}`: false, `{"standby_cluster":{"primary_slot_name":"x"}}`: false, `{"standby_cluster":"h"}`: false,
	} {
		if c, _ := parseConfig([]byte(text)); c.StandbyCluster != want {
			t.Errorf("%s: %v", text, c.StandbyCluster)
		}
	}
}

// FuzzParse: whatever the keys hold, Parse answers, names the key, and gives no
// password away.
func FuzzParse(f *testing.F) {
	for _, keys := range samples {
		for name, value := range keys {
			f.Add(name, []byte(value))
		}
	}
	f.Add("members/x", []byte(`postgres://u:hunter2@h/x?application_name=http://h:8`))
	f.Add("failover", []byte(`a:b`))
	f.Add("config", []byte(`{"ignore_slots":[{"name":[{"a":1}]}],"slots":{"x":{"type":{}}}}`))
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		keys := with("4.0.7", nil)
		keys.Values[name] = value
		v := Parse(keys)
		for _, p := range v.Problems {
			if p.Key != name || p.Text == "" {
				t.Errorf("problem %+v of key %q", p, name)
			}
		}
		for _, m := range v.Topology().Members {
			if strings.ContainsAny(m.Conninfo, "\n\x00") && m.Unusable == "" {
				t.Errorf("conninfo %q", m.Conninfo)
			}
		}
	})
}
