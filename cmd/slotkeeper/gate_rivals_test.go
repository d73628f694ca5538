package main

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/patroni"
)

// What Patroni's keys say of who may be promoted. A synchronous mode that was asked for
// and has not begun, with no key sync or an empty one, bars nobody.
func TestFieldOfSynchronousMode(t *testing.T) {
	const member = `{"conn_url":"postgres://10.0.0.1:5432/postgres","api_url":"http://10.0.0.1:8008","state":"running","role":"replica"}`
	for name, c := range map[string]struct {
		config, sync string
		mode         bool
		quorum       cluster.Opt[int64]
		voters       string
	}{
		"off":             {`{}`, `{"leader":"a","sync_standby":"b"}`, false, cluster.None[int64](), "ab"},
		"not begun":       {`{"synchronous_mode":true}`, ``, false, cluster.None[int64](), ""},
		"ended":           {`{"synchronous_mode":true}`, `{"leader":null,"sync_standby":null}`, false, cluster.None[int64](), ""},
		"one standby":     {`{"synchronous_mode":true}`, `{"leader":"a","sync_standby":"b"}`, true, cluster.None[int64](), "ab"},
		"quorum":          {`{"synchronous_mode":"quorum"}`, `{"leader":"a","sync_standby":"b,c","quorum":1}`, true, cluster.Some(int64(1)), "abc"},
		"quorum of none":  {`{"synchronous_mode":"quorum"}`, `{"leader":"a","sync_standby":"b","quorum":0}`, true, cluster.Some(int64(0)), "ab"},
		"standby cluster": {`{"synchronous_mode":"quorum","standby_cluster":{"host":"x"}}`, `{"leader":"a","sync_standby":"b","quorum":0}`, false, cluster.None[int64](), "ab"},
	} {
		keys := map[string][]byte{"config": []byte(c.config)}
		for _, m := range []string{"a", "b", "c"} {
			keys["members/"+m] = []byte(member)
		}
		if c.sync != "" {
			keys["sync"] = []byte(c.sync)
		}
		view := patroni.Parse(cluster.Keys{Values: keys})
		all := roster{patroni: &view}
		f := all.field("b")
		if f.Sync != c.mode || f.Quorum != c.quorum || c.mode && f.SyncLeader != "a" {
			t.Errorf("%s: %+v", name, f)
		}
		voters := ""
		for _, m := range []string{"a", "b", "c"} {
			if all.candidate(m).Sync {
				voters += m
			}
		}
		if voters != c.voters {
			t.Errorf("%s: %q vote, want %q", name, voters, c.voters)
		}
	}
}
