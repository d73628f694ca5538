package config

import (
	"os"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Config is a complete, checked configuration. The meaning of each field, and
// the reason of its default, stands in the table of keys (keys_*.go), which
// `slotkeeper config show --doc` prints.
type Config struct {
	File string // the file that it was read from, "" for none

	Scope      string
	Name       string
	Cluster    Cluster
	Etcd       Etcd
	Postgres   Postgres
	Slots      Slots
	Sync       Sync
	Promotion  Promotion
	Protection Protection
	Alerts     Alerts
	HTTP       HTTP
	Log        Log
}

// Sources of the topology.
const (
	SourceStatic  = "static"
	SourcePatroni = "patroni"
)

// Cluster says which nodes there are.
type Cluster struct {
	Source  string
	Members []cluster.Member
	Patroni Patroni
}

// Patroni says where a Patroni cluster keeps its topology.
type Patroni struct {
	Namespace string
	REST      Client
}

// Client is how to prove oneself to a server, and how to know it.
type Client struct {
	Username, PasswordFile, CAFile, CertFile, KeyFile string
}

// Etcd says where leadership and ledger live.
type Etcd struct {
	Endpoints []string
	DataDir   string
	Prefix    string
	LeaseTTL  time.Duration
	Client
}

// Embedded reports whether the controller runs its own etcd.
func (e Etcd) Embedded() bool { return len(e.Endpoints) == 0 }

// Postgres is what all connections to members have in common. A conninfo of a
// member wins over it.
type Postgres struct {
	User, DBName, Passfile, SSLMode string
	ConnectTimeout, QueryTimeout    time.Duration
}

// Match selects slots: each glob that is not empty must match.
type Match struct {
	Name, Database, Plugin string
}

// Slots says which slots are kept.
type Slots struct {
	Include, Exclude []Match
}

// Sync is the pace of the loop.
type Sync struct {
	Interval, MinGap, CycleTimeout time.Duration
}

// Promotion is the policy of the promotion gate.
type Promotion struct {
	Policy                string
	MaxRefusals           int
	Deadline, MaxProofAge time.Duration
}

// Manage is the value of a protection setting by which slotkeeper does it itself.
const Manage = "manage"

// Protection bounds what slotkeeper keeps for the sake of absent nodes.
type Protection struct {
	MaxHoldAge               time.Duration
	SynchronizedStandbySlots string
	OldSessions              string
	HoldForStandbys          string
}

// Alerts says who is told.
type Alerts struct {
	Webhooks     []string
	Alertmanager string
	Grace        time.Duration
}

// TLS is a server's certificate.
type TLS struct {
	CertFile, KeyFile string
}

// HTTP is the daemon's listener. Listen "" is none.
type HTTP struct {
	Listen       string
	TLS          TLS
	Username     string
	PasswordFile string
}

// Log is what is logged, and how.
type Log struct {
	Level, Format string
}

// Default gives the configuration of an empty file.
func Default() *Config {
	c := &Config{
		Cluster:    Cluster{Source: SourceStatic, Patroni: Patroni{Namespace: "/service"}},
		Etcd:       Etcd{DataDir: "slotkeeper-data", Prefix: "/slotkeeper", LeaseTTL: 10 * time.Second},
		Postgres:   Postgres{User: "postgres", DBName: "postgres", SSLMode: "prefer", ConnectTimeout: 3 * time.Second, QueryTimeout: 2 * time.Second},
		Slots:      Slots{Include: []Match{{Name: "*"}}},
		Sync:       Sync{Interval: time.Second, MinGap: 20 * time.Millisecond, CycleTimeout: 5 * time.Second},
		Promotion:  Promotion{Policy: "prefer", MaxRefusals: 3, Deadline: 5 * time.Second, MaxProofAge: 5 * time.Minute},
		Protection: Protection{MaxHoldAge: time.Hour, SynchronizedStandbySlots: "observe", OldSessions: "observe", HoldForStandbys: "observe"},
		Alerts:     Alerts{Grace: 30 * time.Second},
		HTTP:       HTTP{Listen: "127.0.0.1:8009"},
		Log:        Log{Level: "info", Format: "auto"},
	}
	if host, err := os.Hostname(); err == nil {
		c.Name = host
	}
	return c
}
