package cases

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// C42: what the waiter's watch would go on from is compacted away while it is cut
// off, and the leader goes: before that, or after it. The waiter misses neither, and
// leads, with a lease so long that it does not look again by itself.
func TestC42CompactionDuringAWatch(t *testing.T) {
	for _, goes := range []string{"before", "after"} {
		t.Run("the leader goes "+goes+" the compaction", func(t *testing.T) {
			c := electOne(t, "lease_ttl: 10m", lab.EtcdOptions{TLS: true, Users: true, TokenTTL: 5 * time.Second})
			at, err := url.Parse(c.etcd.Endpoints()[0])
			c.OK(err)
			link, err := lab.NewLink(at.Host)
			c.OK(err)
			t.Cleanup(link.Close)
			c.other = c.start("other", "https://"+link.Addr())
			c.Logged("waiting for the leader to go")

			link.Cut()
			end := func() { c.OK(c.first.Stop(c.Ctx)) }
			if goes == "before" {
				end()
			}
			c.leaveBehind()
			if goes == "after" {
				link.Heal()
				c.Logged("the watch ended, reading again")
				end()
			}
			link.Heal()
			c.leads(c.other, "other")
		})
	}
}

// leaveBehind has etcd write a few keys and then forget all history, so that a watch
// which did not see them cannot go on.
func (c *elected) leaveBehind() {
	c.T.Helper()
	for _, value := range []string{"1", "2", "3"} {
		c.OK(c.etcd.Put(c.Ctx, "/elsewhere", value))
	}
	c.OK(c.etcd.Compact(c.Ctx))
}

// C42: tokens of users live two seconds, and nobody asks etcd anything for much
// longer. The next request needs a new token, and nobody notices.
func TestC42TokenExpired(t *testing.T) {
	c := electOne(t, "lease_ttl: 10m", lab.EtcdOptions{TLS: true, Users: true, TokenTTL: 2 * time.Second})
	c.Daemon = c.first
	for i := range 3 {
		c.Lasts(8 * time.Second)
		slot := fmt.Sprintf("later%d", i)
		c.Consumed(c.A, slot) // its verdict goes into the ledger
		c.Safe([]string{"cdc", slot})
	}
	if now := c.Fence(c.A).Epoch; now != c.epoch {
		t.Errorf("the leadership was lost: epoch %d, then %d", c.epoch, now)
	}
	c.untouched()
	c.NoComplaints(plan.CondFeedbackOff, plan.CondNoSafeCandidate) // a new slot waits for the replay of a busy machine
}
