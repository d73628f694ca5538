package cluster

import "time"

// Fork is where a timeline ended.
type Fork struct {
	Timeline Timeline `json:"timeline"`
	LSN      LSN      `json:"lsn"`
}

// Node is what one PostgreSQL server said of itself in one read.
type Node struct {
	SystemID        SystemID       `json:"system_identifier"`
	Timeline        Timeline       `json:"timeline"` // on a standby the timeline of replay
	History         []Fork         `json:"history"`  // earlier timelines of this one, oldest first
	InRecovery      bool           `json:"in_recovery"`
	Insert          Opt[LSN]       `json:"insert_lsn"`
	Flush           Opt[LSN]       `json:"flush_lsn"`
	Receive         Opt[LSN]       `json:"receive_lsn"`
	Replay          Opt[LSN]       `json:"replay_lsn"`
	Started         time.Time      `json:"started"`
	WalLevel        string         `json:"wal_level"`
	PrimarySlotName string         `json:"primary_slot_name"`
	Feedback        bool           `json:"hot_standby_feedback"`
	MaxSlots        int            `json:"max_slots"`
	UsedSlots       int            `json:"used_slots"`
	Clock           time.Time      `json:"clock"`
	Fence           Opt[Fence]     `json:"fence"`
	Heartbeat       Opt[time.Time] `json:"heartbeat"` // when the fence file was last raised
	Library         string         `json:"library"`   // version of the loaded shared library
	Script          string         `json:"script"`    // version of the SQL objects (pg_extension.extversion)
	Protocol        int            `json:"protocol"`
	ServerVersion   int            `json:"server_version"` // server_version_num

	// Of 17 and later: the server's own slot synchronization.
	SyncSlots                bool     `json:"sync_replication_slots"`
	SynchronizedStandbySlots []string `json:"synchronized_standby_slots"`
	// IdleSlotTimeout is idle_replication_slot_timeout, 0 for none; 18 and later.
	IdleSlotTimeout time.Duration `json:"idle_replication_slot_timeout"`
	NextXID         XID           `json:"next_xid"`                  // the transaction id to be given next
	FreezeMaxAge    int64         `json:"autovacuum_freeze_max_age"` // in transactions
	// OldestWriter is, on a primary, the open transaction that got its id first:
	// decoding can restart nowhere after its beginning.
	OldestWriter Opt[Transaction] `json:"oldest_writer"`
	// HeldForAllSince is, on a standby, since when its hold pins for every session
	// there; absent while one lives that is older than the hold.
	HeldForAllSince Opt[time.Time] `json:"held_for_all_since"`
}

// Transaction is an open one that has a transaction id.
type Transaction struct {
	PID     int32     `json:"pid"` // 0 for one that is prepared
	GID     string    `json:"gid"` // of one that is prepared
	XID     XID       `json:"xid"`
	Started time.Time `json:"started"` // for one that is prepared, when it was
}

// Fence is what each writing call shows to the extension, and what the fence
// file of a node holds: the highest epoch that has written there.
type Fence struct {
	Scope    string   `json:"scope"`
	Store    string   `json:"store"`
	Epoch    Epoch    `json:"epoch"`
	Owner    string   `json:"owner"`
	SystemID SystemID `json:"system_identifier"`
	Timeline Timeline `json:"timeline"`
}

// Walsender is a row of pg_stat_replication.
type Walsender struct {
	PID             int32    `json:"pid"`
	ApplicationName string   `json:"application_name"`
	State           string   `json:"state"`
	Sent            Opt[LSN] `json:"sent_lsn"`
	Flush           Opt[LSN] `json:"flush_lsn"`
	Replay          Opt[LSN] `json:"replay_lsn"`
	SlotName        string   `json:"slot_name"`
	Client          string   `json:"client"` // address and port, "" over a local socket
}

// Member is a node that the topology names. Conninfo never holds a password.
type Member struct {
	Name     string            `json:"name"`
	Conninfo string            `json:"conninfo"`
	Tags     map[string]string `json:"tags,omitempty"`
	// Unusable says why what the source has of it does not lead to its server, ""
	// where it does. Such a member is still one.
	Unusable string `json:"unusable,omitempty"`
}

// Topology is the membership as its source says it. Leader is absent where the
// source does not know roles: then the nodes are asked.
type Topology struct {
	Members []Member    `json:"members"`
	Leader  Opt[string] `json:"leader"`
	// Manager is nil where no failover manager is the source. With one, an absent
	// Leader means that there is none.
	Manager *Manager `json:"manager,omitempty"`
}
