package cases

import (
	"fmt"
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
}

func elect(t *testing.T) *elected {
	t.Helper()
	s := harness.New(t, harness.Options{Lasts: 8 * time.Minute, Settings: map[string]string{"log_statement": "all"}})
	c := &elected{Scene: s, etcd: s.Etcd(lab.EtcdOptions{TLS: true, Users: true, TokenTTL: 5 * time.Second})}
	s.Consumed(s.A, "cdc")
	c.first = c.start("first")
	s.Safe([]string{"cdc"})
	s.Owned("first")
	c.other = c.start("other")
	s.Daemon = c.first
	c.mirror, c.epoch = s.Incarnation(s.B, "cdc"), s.Fence(s.A).Epoch
	return c
}

func (c *elected) start(name string, endpoints ...string) *lab.Daemon {
	c.T.Helper()
	return c.RunWith(lab.DaemonOptions{Name: name, Etcd: c.etcd.Section(endpoints, "lease_ttl: 3s")})
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

// writes counts the calls by which a controller writes on the primary, as the
// server's log has them: each shows the fence with its owner. From 17 on the log says
// "Parameters", before it "parameters".
func (c *elected) writes(owner string) int {
	c.T.Helper()
	count := 0
	for line := range strings.Lines(c.A.LogTail(1 << 30)) {
		if strings.Contains(line, "arameters: ") && strings.Contains(line, "'"+owner+"'") {
			count++
		}
	}
	return count
}

// C42: the leader's process is stopped for longer than its lease, another one
// leads, and the first goes on as if nothing had been.
func TestC42LeaderStoppedPastItsLease(t *testing.T) {
	c := elect(t)
	c.Wait("the leader's writes to be counted", func() (bool, string) { return c.writes("first") > 0, "none is in the log" })
	c.FreezeDaemon()
	began := time.Now()
	c.leads(c.other, "other")
	t.Logf("the successor has all SAFE %s after the leader was stopped, with a lease of 3 s", time.Since(began).Round(time.Millisecond))

	before := c.writes("first")
	c.Daemon = c.first
	c.ThawDaemon()
	// It sees that it does not lead, and shows what the ledger says: other leads.
	c.Wait("the first one to follow", func() (bool, string) {
		doc, ok := c.Status()
		return ok && doc.Leader.Name == "other" && doc.Source == "ledger", "it does not"
	})
	if after := c.writes("first"); after != before {
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
