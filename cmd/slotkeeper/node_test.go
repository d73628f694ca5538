package main

import (
	"context"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// What the server itself does knows of no fence, so the fence is shown right
// before: a leader whom a later one has fenced sets no failover flag and no
// synchronized_standby_slots.
func TestAFencedLeaderAltersNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	major, err := lab.Major()
	ok(err)
	bin, err := lab.FindPG(max(major, 17))
	ok(err)
	c, err := lab.NewCluster(ctx, lab.Options{BinDir: bin})
	ok(err)
	defer func() { ok(c.Close()) }()
	a, err := c.AddPrimary(ctx, "a")
	ok(err)
	ok(lab.SetupRole(ctx, a))
	ok(a.Exec(ctx, "SELECT pg_create_logical_replication_slot('cdc', 'pgoutput')"))
	ok(a.Exec(ctx, "SELECT pg_create_physical_replication_slot('b')"))
	ok(a.Exec(ctx, "GRANT SET, ALTER SYSTEM ON PARAMETER synchronized_standby_slots TO "+lab.RoleName))
	ok(a.Exec(ctx, "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO "+lab.RoleName))
	s, err := postgres.New(cluster.Member{Name: "a", Conninfo: a.Conninfo("postgres", lab.RoleName)}, postgres.Options{ConnectTimeout: 30 * time.Second, QueryTimeout: 30 * time.Second})
	ok(err)
	defer s.Close()
	read, err := s.Read(ctx)
	ok(err)
	n := &node{session: s}

	// does makes the calls of a leader of an epoch, and wants each to be answered so.
	does := func(epoch cluster.Epoch, want cluster.Code) {
		t.Helper()
		fence := cluster.Fence{Scope: "shop", Store: "store", Epoch: epoch, Owner: "ctl", SystemID: read.Node.SystemID, Timeline: read.Node.Timeline}
		for _, step := range []plan.Step{
			{Kind: plan.StepFailover, Names: []string{"cdc"}},
			{Kind: plan.StepGate, Names: []string{"b"}},
		} {
			step.ID, step.Node, step.Fence = string(step.Kind)+"/a", "a", fence
			rows, err := n.Do(ctx, step)
			ok(err)
			if len(rows) != 1 || rows[0].Code != want {
				t.Errorf("epoch %d, %s: %+v, want %s", epoch, step.Kind, rows, want)
			}
		}
	}
	is := func(want string) {
		t.Helper()
		var got string
		ok(a.QueryRow(ctx, "SELECT format('failover %s, standbys %s', failover, current_setting('synchronized_standby_slots')) FROM pg_replication_slots WHERE slot_name = 'cdc'").Scan(&got))
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}

	_, err = s.RaiseFence(ctx, cluster.Fence{Scope: "shop", Store: "store", Epoch: 8, Owner: "later", SystemID: read.Node.SystemID, Timeline: read.Node.Timeline})
	ok(err)
	does(7, cluster.CodeFenced)
	is("failover f, standbys ")
	does(9, cluster.CodeSet)
	ok(a.DB("").WaitTrue(ctx, 20*time.Millisecond, "the setting to be in force", "SELECT current_setting('synchronized_standby_slots') = 'b'"))
	is("failover t, standbys b")
}
