//go:build patroni

package patroni

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// C37: a standby cluster, two members in a scope and an etcd of their own, whose leader
// streams from the first cluster's. To a controller of that scope its leader is never a
// primary: it says what this is and writes nothing on any of its servers, while the
// first cluster goes on. Promoted by Patroni it becomes a cluster like any other, with
// slots that survive a failover.
func TestC37StandbyCluster(t *testing.T) {
	t.Parallel()
	s := mirrored(t, nil)
	r := s.remote()
	untouched := func() {
		t.Helper()
		for _, n := range r.p.Nodes() {
			if slots := r.Rows(n, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical' OR slot_name LIKE 'slotkeeper%'"); len(slots) > 0 || r.Fence(n).Epoch != 0 {
				t.Errorf("%s has %v, %+v", n.Name(), slots, r.Fence(n))
			}
		}
	}
	r.told(plan.CondStandbyCluster, "")
	follower := r.leader()
	if state, err := follower.State(s.Ctx); err != nil || state.Role != "standby_leader" {
		t.Errorf("%+v, %v", state, err)
	}
	s.Exec(s.leader().Node(), "INSERT INTO t SELECT generate_series(1, 5)")
	r.Cycles(4)
	doc, ok := r.Status()
	if !ok || doc.Primary != nil || len(doc.Slots) != 0 || len(doc.Members) != 2 {
		t.Errorf("%+v", doc)
	}
	for _, f := range doc.Conditions {
		if f.Severity != plan.Info {
			t.Errorf("it tells of %+v", f)
		}
		if f.Code == plan.CondStandbyCluster && (!strings.Contains(f.Message, follower.Name()) || f.Hint == "") {
			t.Errorf("%+v", f)
		}
	}
	untouched()
	if r := r.Slotkeeper("doctor"); !strings.Contains(r.Stdout, plan.CondStandbyCluster) {
		t.Errorf("doctor: %+v", r)
	}
	if doc := r.switchover(3, switchover.OutcomeRefused, "--yes"); !strings.Contains(doc.Message, "standby cluster") {
		t.Error(doc.Message)
	}
	s.safe("cdc")
	s.untold(plan.CondSplitBrain)

	// Its leader dies, and the other one follows the first cluster: no promotion, no gate.
	r.in(follower.Kill)
	r.in(r.p.RevokeLeader)
	next := r.leader()
	if next == follower {
		t.Fatalf("%s leads, and was killed", next.Name())
	}
	r.told(plan.CondStandbyCluster, "")
	if lines := gateLines(next); len(lines) != 0 {
		t.Errorf("the gate was asked: %q", lines)
	}
	r.in(follower.Start)
	r.in(r.p.WaitStreaming)
	r.in(follower.WaitReady)
	untouched()

	// It is promoted: by Patroni, when the section is taken out.
	r.in(func(ctx context.Context) error { return r.p.PatchConfig(ctx, map[string]any{"standby_cluster": nil}) })
	leader := r.leader()
	r.untold(plan.CondStandbyCluster)
	r.in(r.p.WaitStreaming)
	r.known()
	if lines := gateLines(leader); len(lines) != 1 || !strings.HasPrefix(lines[0], "allow: "+leader.Name()+" can serve 0 slots") {
		t.Errorf("the gate said %q", lines)
	}
	r.Logical(leader.Node(), "far")
	r.Exec(leader.Node(), "INSERT INTO t SELECT generate_series(101, 105)")
	r.safe("far")
	r.write(106, 110, r.p.Others(leader)...)
	f := r.failover()
	if f.leader == leader || f.refusals() != 0 || len(f.answers) != 1 || !strings.Contains(f.answers[0], "can serve 1 slot") {
		t.Errorf("%+v", f)
	}
	if got := strings.Join(r.Get(f.leader.Node(), "far"), "\n"); strings.Count(got, "INSERT") != 10 {
		t.Errorf("what was not confirmed does not come: %s", got)
	}
	r.back(f)
	r.safe("far")

	// The first cluster has gone its own way all the while.
	s.safe("cdc")
	s.untold(plan.CondSplitBrain)
	if got := strings.Join(s.Get(s.leader().Node(), "cdc"), "\n"); strings.Count(got, "INSERT") != 5 {
		t.Errorf("its own rows come: %s", got)
	}
}

// remote starts a standby cluster of this one, and a controller for it.
func (s *scene) remote() *scene {
	s.T.Helper()
	version := os.Getenv(versionVariable)
	options := lab.PatroniOptions{
		Version: version, Sample: sample(s.T, version), Gate: harness.Binary(s.T), Scope: "remote", Names: []string{"far1", "far2"},
		Config: map[string]any{
			"ignore_slots":    covering(),
			"standby_cluster": map[string]any{"host": "127.0.0.1", "port": s.leader().Node().Port(), "create_replica_methods": []any{"basebackup"}},
		},
	}
	r := &scene{Scene: &harness.Scene{T: s.T, Ctx: s.Ctx, Lab: s.Lab}}
	var err error
	r.p, err = s.Lab.StartPatroni(s.Ctx, options)
	s.OK(err)
	s.T.Cleanup(func() {
		if s.T.Failed() {
			s.T.Logf("Patroni of the standby cluster:\n%s", r.p.LogTail(30))
		}
		if err := r.p.Close(); err != nil {
			s.T.Errorf("closing Patroni: %v", err)
		}
	})
	r.known()
	r.Daemon, err = s.Lab.StartDaemon(lab.DaemonOptions{Binary: harness.Binary(s.T), Patroni: r.p, Name: "remote"})
	s.OK(err)
	return r
}
