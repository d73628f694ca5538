package switchover

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Policy is what the operator asked for.
type Policy struct {
	To      string // the candidate; "" has one chosen
	Yes     bool   // nobody is asked
	DryRun  bool
	Timeout time.Duration
	Rules   plan.Policy // which slots are slotkeeper's to keep
	GiveUp  string      // the command that takes the record out of etcd
}

const (
	// catchUpBytes is how far behind a mirror, and the candidate, may be when the
	// switchover is asked for: under a live consumer they are never equal for long.
	// The rest comes while the old primary stops; what a mirror lacks then is sent
	// twice.
	catchUpBytes = 1 << 20
	// settle is how long it must look as if Patroni had dropped the request: the keys
	// and the servers are not read at one moment.
	settle = 3 * time.Second
	// uncertain is how long facts may be missing before there is no going on.
	uncertain = 5 * time.Second
)

// Facts is all that is known at one moment.
type Facts struct {
	Now      time.Time
	Keys     plan.Fact[Keys]
	Nodes    map[string]plan.Fact[Node]
	Status   plan.Fact[status.Status] // the daemon's, else the ledger's
	Doubt    string                   // why Status is too old to be believed, "" where it is not
	Record   plan.Fact[cluster.Opt[Record]]
	Gate     []Answer // of the failover that ends the timeline of Record, the newest last
	Agreed   cluster.Opt[Consent]
	Request  Request // of this run
	Verified plan.Fact[Verified]
}

// Consent is what the operator was asked, and has said yes to. It holds for nothing
// else: while a question stands another may come to lead.
type Consent struct {
	Leader    string
	Timeline  cluster.Timeline // that it leads
	Candidate string
	At        time.Time // of the yes
}

func (c Consent) String() string { return fmt.Sprintf("from %s to %s", c.Leader, c.Candidate) }

// Keys is what Patroni's keys say.
type Keys struct {
	Leader         cluster.Opt[string]
	Paused         bool
	StandbyCluster bool
	Synchronous    bool
	Failover       cluster.Opt[Wanted] // a switchover or failover that was asked for and not begun or ended yet
	// Modified is the revision of the last change of that key, 0 where it is not there.
	Modified int64
	Retry    time.Duration // how long Patroni itself goes on trying etcd
	Members  []Member
	// Successors gives who led after each timeline, where Patroni says it.
	Successors map[cluster.Timeline]string
}

// Wanted is what somebody has asked Patroni for.
type Wanted struct{ Leader, Candidate string }

// Member is a member as Patroni sees it.
type Member struct {
	Name       string
	NoFailover bool
	Priority   int64
	NoSync     bool
	Sync       bool // it is in the key of synchronous replication
	Running    bool // its server does, Patroni says
	State      string
	Unusable   string // why its address is not known
}

// Node is one read of a member's own server.
type Node struct {
	plan.NodeRead
	Receiving bool // its WAL receiver streams
	// Stopped: it could not be read because nobody listens there any more. A server
	// that is stopping still does, and refuses.
	Stopped bool
}

func (n Node) writable() bool { return !n.Node.InRecovery }

// Answer is what a promotion gate said.
type Answer struct {
	Node  string    `json:"node"`
	At    time.Time `json:"at"`
	Allow bool      `json:"allow"`
	Code  string    `json:"code"`
	Line  string    `json:"line"`
}

// Request is the one request of this run, and what Patroni said to it.
type Request struct {
	Made     bool
	Answered bool
	// Unsent: it surely did not reach Patroni.
	Unsent bool
	Status int    // of HTTP; 0 where there was no answer
	Text   string // Patroni's words, or why there are none
	Hint   string
}

// Verified is what was found at each slot on the new primary, once it was looked at.
// It says nothing of whoever leads after that one.
type Verified struct {
	Leader   string
	Timeline cluster.Timeline
	Slots    []Found
}

// Found is what was found at one slot on the new primary.
type Found struct {
	Name      string
	There     bool
	Usable    bool
	Unknown   bool // it could not be found out
	Problem   string
	Restart   cluster.Opt[cluster.LSN]
	Confirmed cluster.Opt[cluster.LSN]
	Failover  bool
}

func (k Keys) member(name string) (Member, bool) {
	for _, m := range k.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

func (k Keys) has(name string) bool {
	_, ok := k.member(name)
	return ok
}
