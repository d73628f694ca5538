package patroni

import (
	"github.com/slotkeeper/slotkeeper/cluster"
)

// samples are the keys of real clusters, as each version of Patroni wrote them.
var samples = map[string]map[string]string{
	"3.0.2": {
		"initialize":    "7713838868739053938",
		"leader":        "node1",
		"members/node1": `{"conn_url":"postgres://127.0.0.1:15878/postgres","api_url":"http://127.0.0.1:10665/patroni","state":"running","role":"master","version":"3.0.2","xlog_location":67109760,"timeline":3}`,
		"members/node2": `{"conn_url":"postgres://127.0.0.1:10548/postgres","api_url":"http://127.0.0.1:25673/patroni","state":"starting","role":"replica","version":"3.0.2"}`,
		"members/node3": `{"conn_url":"postgres://127.0.0.1:17223/postgres","api_url":"http://127.0.0.1:22783/patroni","state":"running","role":"replica","version":"3.0.2","xlog_location":67109760,"timeline":3}`,
		"config":        `{"loop_wait":1,"maximum_lag_on_failover":1048576,"postgresql":{"parameters":{"hot_standby_feedback":"on","wal_level":"logical"},"use_pg_rewind":true,"use_slots":true},"retry_timeout":3,"ttl":20}`,
		"status":        `{"optime":67109760}`,
		"failover":      `{}`,
		"history":       `[[1,67109256,"no recovery target specified","2026-11-30T05:54:51.510363+00:00","node2"],[2,67109480,"no recovery target specified","2026-11-30T05:55:00.830363+00:00","node1"]]`,
	},
	"4.0.7": {
		"initialize":    "7713844783587845137",
		"leader":        "node1",
		"members/node1": `{"conn_url":"postgres://127.0.0.1:15533/postgres","api_url":"http://127.0.0.1:25535/patroni","state":"running","role":"primary","version":"4.0.7","xlog_location":67363792,"timeline":1}`,
		"members/node2": `{"conn_url":"postgres://127.0.0.1:30437/postgres","api_url":"http://127.0.0.1:25850/patroni","state":"running","role":"replica","version":"4.0.7","xlog_location":67363792,"replication_state":"streaming","timeline":1,"pause":true}`,
		"members/node3": `{"conn_url":"postgres://127.0.0.1:30206/postgres","api_url":"http://127.0.0.1:18377/patroni","state":"running","role":"replica","version":"4.0.7","xlog_location":67363792,"replication_state":"streaming","timeline":1,"tags":{"nofailover":true,"failover_priority":0,"replicatefrom":"node2"}}`,
		"config":        `{"ttl":20,"loop_wait":5,"pause":true,"postgresql":{"use_slots":true,"parameters":{"hot_standby_feedback":"on"}},"ignore_slots":[{"type":"logical"}],"synchronous_mode":"quorum"}`,
		"status":        `{"optime":67363792,"slots":{"node3":67363792,"node2":67363792,"node1":67363792},"retain_slots":["node1","node2","node3","gone"]}`,
		"sync":          `{"leader":"node1","quorum":1,"sync_standby":"node2,node3"}`,
		"failover":      `{"leader":"node1","member":"node2"}`,
	},
	"4.1.5": {
		"initialize":    "7713845427475387089",
		"leader":        "node2",
		"members/node1": `{"conn_url":"postgres://127.0.0.1:10242/postgres","api_url":"http://127.0.0.1:26482/patroni","state":"running","role":"replica","version":"4.1.5","xlog_location":83886176,"replay_lsn":83886160,"receive_lsn":83886176,"replication_state":"streaming","timeline":1}`,
		"members/node2": `{"conn_url":"postgres://127.0.0.1:24989/postgres","api_url":"http://127.0.0.1:13008/patroni","state":"running","role":"primary","version":"4.1.5","xlog_location":83886176,"timeline":1}`,
		"members/node3": `{"conn_url":"postgres://127.0.0.1:12426/postgres","api_url":"http://127.0.0.1:23057/patroni","state":"running","role":"replica","version":"4.1.5","xlog_location":83886176,"replay_lsn":83886176,"receive_lsn":83886176,"replication_state":"in archive recovery","timeline":1}`,
		"config":        `{"loop_wait":1,"maximum_lag_on_failover":1048576,"postgresql":{"parameters":{"hot_standby_feedback":"off"},"use_slots":"off"},"retry_timeout":3,"ttl":20,"failsafe_mode":true}`,
		"status":        `{"optime":83886176,"slots":{"node1":83886176,"node3":83886176,"node2":83886176},"retain_slots":["node1","node2","node3"]}`,
		"failsafe":      `{"node1":"http://127.0.0.1:26482/patroni","node2":"http://127.0.0.1:13008/patroni"}`,
	},
}

func keysOf(values map[string]string) cluster.Keys {
	k := cluster.Keys{Revision: 7, Values: map[string][]byte{}}
	for name, value := range values {
		k.Values[name] = []byte(value)
	}
	return k
}

// with gives the keys of a version with some of them changed; "" takes one out.
func with(version string, changed map[string]string) cluster.Keys {
	k := keysOf(samples[version])
	for name, value := range changed {
		k.Values[name] = []byte(value)
		if value == "" {
			delete(k.Values, name)
		}
	}
	return k
}
