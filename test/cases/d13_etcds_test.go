package cases

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// D13: the configuration moves from one etcd of three members to another, empty one,
// while a controller still runs on the first. Without --take-over the newcomer is
// refused for as long as the other one lives, however long that is; with it, once, it
// leads and leaves every mirror as it is, and the other one writes nothing any more.
func TestD13MovedToAnotherEtcd(t *testing.T) {
	c := electOne(t, "lease_ttl: 3s", faultyEtcd)
	moved := c.Etcd(faultyEtcd)
	newcomer := func(args ...string) {
		c.other = c.RunWith(lab.DaemonOptions{Name: "other", Etcd: moved.Section(nil, c.lease), Args: args})
	}
	stop := c.Busy(c.A, "cdc")
	newcomer()
	c.Lasts(11 * leaseOfThree) // a fence that nobody raises is taken over after ten
	keptOut(c.Scene, "first")
	c.because("first")
	if wrote := c.wrote("other"); wrote > 0 {
		t.Errorf("a controller that is refused made %d calls that write", wrote)
	}
	c.StopDaemon()

	newcomer("--take-over")
	c.Owned("other")
	c.Safe([]string{"cdc"})
	c.untouched()

	c.Daemon = c.first
	c.because("other")
	before := c.wrote("first")
	keptOut(c.Scene, "other")
	if after := c.wrote("first"); after != before {
		t.Errorf("a controller that is refused made %d calls that write", after-before)
	}
	stop()
	c.Daemon = c.other
	c.follows()

	// Its own etcd knows it from now on.
	c.StopDaemon()
	newcomer()
	c.follows()
	c.NoCondition(plan.CondForeignEpoch)
}

// because wants foreign_epoch to name who has the fence of every node.
func (c *elected) because(owner string) {
	c.T.Helper()
	c.Condition(plan.CondForeignEpoch)
	c.Wait("all nodes to be told of", func() (bool, string) {
		doc, _ := c.Status()
		told := 0
		for _, f := range doc.Conditions {
			if f.Code != plan.CondForeignEpoch {
				continue
			}
			if !strings.Contains(f.Message, "last raised by "+owner) || !strings.Contains(f.Message, `scope "lab" of store `+c.Fence(c.A).Store) {
				return false, f.Message
			}
			told++
		}
		return told == len(c.Nodes()), "some are not"
	})
}
