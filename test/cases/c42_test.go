package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// leaderKey is where the controllers of a scene agree on who leads.
const leaderKey = "/slotkeeper/lab/leader"

// elected is how the cases of C42 begin: three members of etcd with TLS and
// users whose tokens live five seconds, two controllers, and a slot that is SAFE.
type elected struct {
	*harness.Scene
	etcd         *lab.Etcd
	first, other *lab.Daemon // first leads
	mirror       string      // the incarnation of the mirror
	epoch        int64
	lease        string // the setting of etcd.lease_ttl
}

func elect(t *testing.T) *elected {
	t.Helper()
	c := electOne(t, "lease_ttl: 3s", lab.EtcdOptions{TLS: true, Users: true, TokenTTL: 5 * time.Second})
	c.other = c.start("other")
	c.Daemon = c.first
	return c
}

// electOne is elect with one controller.
func electOne(t *testing.T, lease string, o lab.EtcdOptions) *elected {
	t.Helper()
	s := harness.New(t, harness.Options{Lasts: 8 * time.Minute, Settings: map[string]string{"log_statement": "all", "log_timezone": "UTC"}})
	c := &elected{Scene: s, etcd: s.Etcd(o), lease: lease}
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Consumed(s.A, "cdc")
	c.first = c.start("first")
	s.Safe([]string{"cdc"})
	s.Owned("first")
	c.mirror, c.epoch = s.Incarnation(s.B, "cdc"), s.Fence(s.A).Epoch
	return c
}

func (c *elected) start(name string, endpoints ...string) *lab.Daemon {
	c.T.Helper()
	return c.RunWith(lab.DaemonOptions{Name: name, Etcd: c.etcd.Section(endpoints, c.lease), More: "log: {level: debug}\n"})
}

// leads waits until a controller leads with a later epoch than the one before
// and has seen the slot SAFE; the mirror must be the one that it was.
func (c *elected) leads(d *lab.Daemon, name string) {
	c.T.Helper()
	c.Daemon = d
	c.Wait(name+" to lead", func() (bool, string) {
		f := c.Fence(c.A)
		return f.Owner == name && f.Epoch > c.epoch, fmt.Sprintf("epoch %d of %s leads", f.Epoch, f.Owner)
	})
	c.Safe([]string{"cdc"})
	c.epoch = c.Fence(c.A).Epoch
	c.untouched()
}

func (c *elected) untouched() {
	c.T.Helper()
	if now := c.Incarnation(c.B, "cdc"); now != c.mirror {
		c.T.Error("the mirror was made anew")
	}
}

// write is one call by which a controller writes on a node.
type write struct {
	at    time.Time
	epoch int64
	owner string
}

var shownFence = regexp.MustCompile(`^(\S+ \S+) UTC .*[Pp]arameters: .*\$\d+ = '(\d+)', \$\d+ = '(first|other)'`)

// writes are all such calls in their order, as the servers' logs have them: each
// shows the fence with its epoch and its owner, also one that is refused. From 17 on
// the log says "Parameters".
func (c *elected) writes() []write {
	c.T.Helper()
	var all []write
	for _, n := range c.Nodes() {
		for line := range strings.Lines(n.LogTail(1 << 30)) {
			found := shownFence.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			at, err := time.Parse("2006-01-02 15:04:05.000", found[1])
			c.OK(err)
			epoch, err := strconv.ParseInt(found[2], 10, 64)
			c.OK(err)
			all = append(all, write{at, epoch, found[3]})
		}
	}
	slices.SortStableFunc(all, func(a, b write) int { return a.at.Compare(b.at) })
	return all
}

// wrote counts the writes of one controller.
func (c *elected) wrote(owner string) int {
	c.T.Helper()
	count := 0
	for _, w := range c.writes() {
		if w.owner == owner {
			count++
		}
	}
	return count
}

// C42: the leader's process is stopped for longer than its lease, another one
// leads, and the first goes on as if nothing had been.
func TestC42LeaderStoppedPastItsLease(t *testing.T) {
	c := elect(t)
	c.Wait("the leader's writes to be counted", func() (bool, string) { return c.wrote("first") > 0, "none is in the log" })
	c.FreezeDaemon()
	began := time.Now()
	c.leads(c.other, "other")
	t.Logf("the successor has all SAFE %s after the leader was stopped, with a lease of 3 s", time.Since(began).Round(time.Millisecond))

	before := c.wrote("first")
	c.Daemon = c.first
	c.ThawDaemon()
	// It sees that it does not lead, and shows what the ledger says: other leads.
	c.Wait("the first one to follow", func() (bool, string) {
		doc, ok := c.Status()
		return ok && doc.Leader.Name == "other" && doc.Source == "ledger", "it does not"
	})
	if after := c.wrote("first"); after != before {
		t.Errorf("a leader without a lease made %d calls that write", after-before)
	}
	c.Daemon = c.other
	c.Safe([]string{"cdc"})
	c.untouched()
}

// C42: a lease is revoked. A waiter has none, so there is nothing of a waiter's
// that could be.
func TestC42LeaseRevoked(t *testing.T) {
	c := elect(t)
	leases, err := c.etcd.Leases(c.Ctx)
	c.OK(err)
	if len(leases) != 1 {
		t.Errorf("there are %d leases, the leader's alone was wanted", len(leases))
	}
	for range 2 {
		c.OK(c.etcd.RevokeLeaseOf(c.Ctx, leaderKey))
		c.Wait("a later leader", func() (bool, string) {
			f := c.Fence(c.A)
			return f.Epoch > c.epoch, fmt.Sprintf("epoch %d of %s leads", f.Epoch, f.Owner)
		})
		who := map[string]*lab.Daemon{"first": c.first, "other": c.other}
		leader := c.Fence(c.A).Owner
		c.leads(who[leader], leader)
	}
}

// C42: the leader is killed. Its successor takes all mirrors as they are: the same
// directories, of the same generation, under the same holds.
func TestC42SuccessorLeavesMirrorsUntouched(t *testing.T) {
	c := elect(t)
	for i := range 4 {
		c.Consumed(c.A, fmt.Sprintf("more%d", i))
	}
	names := []string{"cdc", "more0", "more1", "more2", "more3"}
	c.Daemon = c.first
	c.Safe(names)
	before := c.markers()
	c.KillDaemon()
	killed := time.Now()
	c.leads(c.other, "other")
	c.Safe(names)
	t.Logf("the successor has all SAFE %s after the leader was killed", time.Since(killed).Round(time.Millisecond))
	if after := c.markers(); after != before {
		t.Errorf("before the leader was killed:\n%s\nunder its successor:\n%s", before, after)
	}
	c.oneAfterAnother()
}

// markers tells of everything of ours on the nodes: directories, generations, sources.
func (c *elected) markers() string {
	c.T.Helper()
	var all []string
	for _, n := range c.Nodes() {
		for _, row := range c.Rows(n, `SELECT format('%s %s %s %s', name, incarnation, (marker).generation, (marker).source)
			FROM slotkeeper.slots() WHERE marker IS NOT NULL ORDER BY name`) {
			all = append(all, n.Name()+": "+row)
		}
	}
	return strings.Join(all, "\n")
}
