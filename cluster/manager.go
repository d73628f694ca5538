package cluster

import "time"

// Manager is what the failover manager beside the servers, Patroni, says of the
// cluster beyond its members and its leader.
type Manager struct {
	Paused bool `json:"paused"`
	// StandbyCluster: the leader follows a server of another cluster and takes no writes.
	StandbyCluster bool `json:"standby_cluster"`
	// TTL is how long the leader key outlives a leader that has fallen silent.
	TTL      time.Duration `json:"ttl"`
	UseSlots bool          `json:"use_slots"` // standbys stream through physical slots
	Slots    SlotRules     `json:"slots"`
	// Problems are the keys that cannot be read, and what is taken instead.
	Problems []KeyProblem `json:"problems"`
}

// KeyProblem is one key of the manager's that cannot be read.
type KeyProblem struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// SlotRules are the manager's own rules about which slots it leaves alone.
type SlotRules struct {
	// Unusable says why the list of matchers cannot be used at all, "" where it can.
	Unusable string        `json:"unusable,omitempty"`
	Ignore   []SlotMatcher `json:"ignore"`
	// Misplaced: there is a list in a place where the manager does not look.
	Misplaced bool `json:"misplaced,omitempty"`
	// Permanent are the slots that it makes and keeps itself, by name.
	Permanent map[string]PermanentSlot `json:"permanent"`
	// Members are the physical slots through which members stream, by name, each
	// with the members that it is for.
	Members map[string][]string `json:"members"`
	// SparesFailover: it leaves slots alone whose failover flag is set (17 and later).
	SparesFailover bool `json:"spares_failover"`
}

// SlotMatcher is one entry of a list of slots to be left alone. An absent field
// matches every slot.
type SlotMatcher struct {
	Name, Type, Database, Plugin Opt[string]
	// Unusable says what makes the manager fail at this entry, "" where nothing does.
	Unusable string
}

// PermanentSlot is a slot that the manager makes and keeps.
type PermanentSlot struct {
	Kind     SlotKind `json:"kind"` // "" where the entry cannot be used
	Database string   `json:"database,omitempty"`
	Plugin   string   `json:"plugin,omitempty"`
}

// Keys are the keys below one folder of etcd, all of one moment, by their names
// below it. Err, when not nil, says that etcd does not answer or refuses; then
// the rest is what was known before.
type Keys struct {
	Revision int64
	Values   map[string][]byte
	Modified map[string]int64 // the revision of each key's last change
	Err      error
}
