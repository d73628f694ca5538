package nodes

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a primary a and its standby b, with a session of slotkeeper's own
// role to each.
type pair struct {
	t      *testing.T
	ctx    context.Context
	lab    *lab.Cluster
	a, b   *lab.Node
	as, bs *postgres.Session
	fence  cluster.Fence
}

func newPair(t *testing.T) *pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c, err := lab.NewCluster(ctx, lab.Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	p := &pair{t: t, ctx: ctx, lab: c}
	p.a, err = c.AddPrimary(ctx, "a")
	ok(t, err)
	ok(t, lab.SetupRole(ctx, p.a))
	p.b, err = c.AddStandby(ctx, "b", p.a, lab.StandbyOptions{})
	ok(t, err)
	ok(t, p.b.WaitCatchup(ctx, p.a))
	p.as, p.bs = p.session(p.a), p.session(p.b)
	node := p.read(p.as).Node
	p.fence = cluster.Fence{Scope: "shop", Store: "store", Epoch: 7, Owner: "test", SystemID: node.SystemID, Timeline: node.Timeline}
	for _, s := range []*postgres.Session{p.as, p.bs} {
		if got, err := s.RaiseFence(ctx, p.fence); err != nil || got != "raised" {
			t.Fatalf("raising the fence on %s: %q, %v", s.Node(), got, err)
		}
	}
	return p
}

func (p *pair) session(n *lab.Node) *postgres.Session {
	p.t.Helper()
	s, err := postgres.New(cluster.Member{Name: n.Name(), Conninfo: n.Conninfo("postgres", lab.RoleName)},
		postgres.Options{ConnectTimeout: 30 * time.Second, QueryTimeout: 30 * time.Second})
	ok(p.t, err)
	p.t.Cleanup(s.Close)
	return s
}

func (p *pair) read(s *postgres.Session) postgres.Read {
	p.t.Helper()
	r, err := s.Read(p.ctx)
	ok(p.t, err)
	return r
}

// slot reads one slot; it must be there.
func (p *pair) slot(s *postgres.Session, name string) cluster.Slot {
	p.t.Helper()
	r := p.read(s)
	for _, slot := range r.Slots {
		if slot.Name == name {
			return slot
		}
	}
	p.t.Fatalf("node %s has no slot %q", s.Node(), name)
	return cluster.Slot{}
}

// one gives the single outcome of a call.
func one(t *testing.T, all []cluster.Outcome, err error) cluster.Outcome {
	t.Helper()
	ok(t, err)
	if len(all) != 1 {
		t.Fatalf("%d outcomes, want 1: %+v", len(all), all)
	}
	return all[0]
}

func coded(t *testing.T, o cluster.Outcome, want cluster.Code) {
	t.Helper()
	if o.Code != want {
		t.Fatalf("%s on %s: code %s (%s; %s), want %s", o.Name, o.Node, o.Code, o.Detail, o.Hint, want)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
