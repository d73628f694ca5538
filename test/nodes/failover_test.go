package nodes

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/primary"
)

// The server's command waits as long as somebody has the slot. Ours does not, and
// leaves nobody behind who waits.
func TestSetFailoverDoesNotWaitForAConsumer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	major, err := lab.Major()
	ok(t, err)
	bin, err := lab.FindPG(max(major, 17))
	ok(t, err)
	c, err := lab.NewCluster(ctx, lab.Options{BinDir: bin})
	ok(t, err)
	defer func() { ok(t, c.Close()) }()
	a, err := c.AddPrimary(ctx, "a")
	ok(t, err)
	ok(t, lab.SetupRole(ctx, a))
	ok(t, lab.SetupLoad(ctx, a))
	for _, slot := range []string{"free", "taken", "later"} {
		ok(t, a.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", slot))
	}
	s, err := postgres.New(cluster.Member{Name: "a", Conninfo: a.Conninfo("postgres", lab.RoleName)}, postgres.Options{ConnectTimeout: 30 * time.Second, QueryTimeout: 30 * time.Second})
	ok(t, err)
	defer s.Close()
	read, err := s.Read(ctx)
	ok(t, err)
	fence := cluster.Fence{Scope: "shop", Store: "store", Epoch: 7, SystemID: read.Node.SystemID, Timeline: read.Node.Timeline}
	set := func(names ...string) string {
		t.Helper()
		rows, err := primary.SetFailover(ctx, s, fence, names)
		ok(t, err)
		said := ""
		for _, row := range rows {
			said += fmt.Sprintf("%s %s, ", row.Name, row.Code)
		}
		return said
	}

	consumer := &lab.Consumer{Slot: "taken", Deliveries: lab.NewDeliveries()}
	stream, err := consumer.Start(ctx, a)
	ok(t, err)
	if said := set("free", "missing", "taken", "later"); said != "free set, missing retry, taken retry, later retry, " {
		t.Errorf("it says %s", said)
	}
	ok(t, a.DB("").WaitTrue(ctx, 20*time.Millisecond, "nobody to wait for the slot",
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = $1 AND backend_type = 'walsender')", lab.RoleName))
	ok(t, stream.Stop())
	ok(t, a.DB("").WaitTrue(ctx, 20*time.Millisecond, "the slot to be free", "SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'taken'"))
	if said := set("taken", "later"); said != "taken set, later set, " {
		t.Errorf("it says %s", said)
	}
	read, err = s.Read(ctx)
	ok(t, err)
	for _, slot := range read.Slots {
		if !slot.Failover {
			t.Errorf("slot %s has no failover flag", slot.Name)
		}
	}
	fence.Timeline++
	if _, err := primary.SetFailover(ctx, s, fence, []string{"free"}); err == nil {
		t.Error("it sets the flag on a server of another timeline")
	}
}
