package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// leaseOfThree is the lease of the scenes below, and for how long it goes on
// after the last time that its holder asked.
const leaseOfThree = 3 * time.Second

var faultyEtcd = lab.EtcdOptions{TLS: true, Users: true, TokenTTL: 5 * time.Second}

// oneAfterAnother wants no write of an epoch to come after one of a later epoch.
func (c *elected) oneAfterAnother() {
	c.T.Helper()
	var last write
	for _, w := range c.writes() {
		if w.epoch < last.epoch {
			c.T.Errorf("%s writes with epoch %d at %s, after %s has with epoch %d at %s", w.owner, w.epoch, w.at, last.owner, last.epoch, last.at)
		}
		last = w
	}
}

// waitsForNobody wants the only controller not to have waited for the end of a
// lease that was its own, and after a time not to have asked in vain more than
// twice: once with what was under way, and once again.
func (c *elected) waitsForNobody(since time.Time) {
	c.T.Helper()
	vain := 0
	for _, line := range c.Log() {
		at, err := time.Parse(time.RFC3339, fmt.Sprint(line["@timestamp"]))
		c.OK(err)
		switch {
		case line["@message"] == "waiting for the leader to go":
			c.T.Errorf("it waits for itself: %v", line)
		case line["@message"] == "campaigning" && at.After(since):
			vain++
			c.T.Logf("in vain: %v", line)
		}
	}
	if vain > 2 {
		c.T.Errorf("it asks %d times in vain", vain)
	}
}

// follows waits until the mirror is where the slot is now, and wants it to be the
// one that it was.
func (c *elected) follows() {
	c.T.Helper()
	c.Wait("the slot to be free", func() (bool, string) {
		return c.Text(c.A, "SELECT active FROM pg_replication_slots WHERE slot_name = 'cdc'") == "false", "its consumer has it"
	})
	c.Exec(c.A, "INSERT INTO t VALUES (1); SELECT count(*) FROM pg_logical_slot_get_changes('cdc', NULL, NULL)")
	c.Mirrored("cdc", c.B)
	c.untouched()
}

// C42: etcd's leader is killed, again and again, while the slot moves all the
// time. The controller keeps its lease or gets it back, and goes on.
func TestC42EtcdsLeaderKilled(t *testing.T) {
	c := electOne(t, "lease_ttl: 3s", faultyEtcd)
	stop := c.Busy(c.A, "cdc")
	for range 3 {
		leader, err := c.etcd.Leader(c.Ctx)
		c.OK(err)
		before := len(c.writes())
		c.OK(leader.Kill(c.Ctx))
		began := time.Now()
		c.Wait("the other two to agree", func() (bool, string) {
			_, err := c.etcd.Leader(c.Ctx)
			return err == nil, fmt.Sprint(err)
		})
		c.Safe([]string{"cdc"})
		f := c.Fence(c.A)
		t.Logf("SAFE again %s after etcd's leader %s was killed, with epoch %d after %d", time.Since(began).Round(time.Millisecond), leader.Name(), f.Epoch, c.epoch)
		c.epoch = f.Epoch
		c.Wait("further writes", func() (bool, string) { return len(c.writes()) > before, "there are none" })
		c.untouched()
		c.OK(c.etcd.StartAll(c.Ctx))
	}
	stop()
	c.follows()
	c.waitsForNobody(time.Now())
	c.oneAfterAnother()
}

// C42: one member after the other is cut off from its two peers, and still
// answers its clients. The controller goes on through the others.
func TestC42MemberIsolated(t *testing.T) {
	c := electOne(t, "lease_ttl: 3s", faultyEtcd)
	stop := c.Busy(c.A, "cdc")
	for _, m := range c.etcd.Members() {
		m.Isolate()
		began := time.Now()
		c.Lasts(2 * leaseOfThree)
		c.Safe([]string{"cdc"})
		f := c.Fence(c.A)
		t.Logf("%s isolated: SAFE after %s, with epoch %d after %d", m.Name(), time.Since(began).Round(time.Millisecond), f.Epoch, c.epoch)
		c.epoch = f.Epoch
		c.untouched()
		m.Rejoin()
		c.OK(c.etcd.WaitHealthy(c.Ctx))
	}
	stop()
	c.follows()
	c.waitsForNobody(time.Now())
	c.oneAfterAnother()
}

// C42: the one member that the leader knows is cut off from its peers. The leader
// writes nothing once its lease is over, and follows whoever leads then.
func TestC42TheOnlyKnownMemberIsolated(t *testing.T) {
	c := electOne(t, "lease_ttl: 3s", faultyEtcd)
	c.StopDaemon()
	known := c.etcd.Members()[0]
	c.first = c.start("first", known.URL())
	c.Wait("the first to lead through one member", func() (bool, string) {
		f := c.Fence(c.A)
		return f.Epoch > c.epoch, "it does not"
	})
	c.epoch = c.Fence(c.A).Epoch
	cutOff := c.epoch
	c.other = c.start("other")
	c.Daemon = c.first
	stop := c.Busy(c.A, "cdc")
	c.Safe([]string{"cdc"})

	known.Isolate()
	isolated := time.Now()
	c.leads(c.other, "other")
	t.Logf("the successor has all SAFE %s after the leader's member was isolated", time.Since(isolated).Round(time.Millisecond))
	c.Daemon = c.first
	if down := c.Condition(plan.CondEtcdUnreachable); down.Severity != plan.Critical {
		t.Errorf("etcd_unreachable is %s", down.Severity)
	}
	c.cannotTell()
	stop()

	known.Rejoin()
	c.agree()
	c.follows()
	c.oneAfterAnother()
	for _, w := range c.writes() {
		if w.epoch == cutOff && w.at.After(isolated.Add(leaseOfThree)) {
			t.Errorf("%s writes with epoch %d at %s, its member was isolated at %s", w.owner, w.epoch, w.at, isolated.UTC())
		}
	}
}

// agree waits until one of the two leads and the other one says so too. Which one
// is etcd's to say: before 3.5 a member that comes back with a later term than the
// others' makes them elect anew, and a lease of three seconds may not outlast that.
func (c *elected) agree() {
	c.T.Helper()
	c.Wait("one to lead, and the other one to follow", func() (bool, string) {
		one, err := harness.StatusOf(c.Ctx, c.first)
		another, err2 := harness.StatusOf(c.Ctx, c.other)
		if err != nil || err2 != nil {
			return false, fmt.Sprint(err, err2)
		}
		leads, follows := one, another
		c.Daemon = c.first
		if one.Source == "ledger" {
			leads, follows = another, one
			c.Daemon = c.other
		}
		return leads.Source != "ledger" && follows.Source == "ledger" && leads.Leader == follows.Leader,
			fmt.Sprintf("%+v (%s) and %+v (%s)", one.Leader, one.Source, another.Leader, another.Source)
	})
}

// cannotTell wants `status` to end with 4, "unknown", and to say what is the matter.
func (c *elected) cannotTell() {
	c.T.Helper()
	r := c.Slotkeeper("status")
	if r.Code != 4 || !strings.Contains(r.Stdout+r.Stderr, plan.CondEtcdUnreachable) {
		c.T.Errorf("status ends with %d and says:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if strings.Contains(r.Stdout+r.Stderr, "hunter") {
		c.T.Errorf("status shows a password:\n%s%s", r.Stdout, r.Stderr)
	}
}

// C42: all members of etcd die, and come back. In between nothing is written and
// mirrors stay; afterwards all is as before, without anybody's help.
func TestC42AllMembersDownAndBack(t *testing.T) {
	c := electOne(t, "lease_ttl: 3s", faultyEtcd)
	stop := c.Busy(c.A, "cdc")
	c.Safe([]string{"cdc"})
	c.OK(c.etcd.KillAll(c.Ctx))
	down := time.Now()
	c.Condition(plan.CondEtcdUnreachable)
	c.cannotTell()
	c.Wait("the lease to be over for long", func() (bool, string) {
		c.cannotTell()
		return time.Since(down) > 3*leaseOfThree, "it is not"
	})
	stop()
	at, before := c.Slot(c.B, "cdc"), len(c.writes())
	if moved := c.Slot(c.A, "cdc").Confirmed; moved <= at.Confirmed {
		t.Fatalf("the scene is not set: the slot is at %s, its mirror at %s", moved, at.Confirmed)
	}
	c.untouched()
	for _, w := range c.writes() {
		if w.at.After(down.Add(leaseOfThree)) {
			t.Errorf("a write at %s, etcd has been down since %s", w.at, down.UTC())
		}
	}
	if now := c.Slot(c.B, "cdc"); now != at || len(c.writes()) != before {
		t.Errorf("the mirror moves from %v to %v without etcd", at, now)
	}

	c.OK(c.etcd.StartAll(c.Ctx))
	back := time.Now()
	c.leads(c.first, "first")
	c.waitsForNobody(back)
	t.Logf("SAFE %s after etcd was back", time.Since(back).Round(time.Millisecond))
	c.NoCondition(plan.CondEtcdUnreachable)
	if r := c.Slotkeeper("status"); r.Code != 0 {
		t.Errorf("status ends with %d and says:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	c.follows()
	c.oneAfterAnother()
}
