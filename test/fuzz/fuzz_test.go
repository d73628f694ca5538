package fuzz

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Hostile calls of every function, on a primary and on a standby, from four
// sessions at once, between valid ones, while slots move: the servers stand, and
// nothing is left over. In the end the mirrors are made anew and decode.
func TestHostileCalls(t *testing.T) {
	t.Parallel()
	n := calls(t)
	g := newStage(t, 4*time.Minute+time.Duration(n)*30*time.Millisecond, nil)
	random := seed(t)
	before := []*witness{g.witness(g.primary), g.witness(g.standby)}
	count := newTally()
	var workers []*worker
	for i, node := range []*lab.Node{g.primary, g.standby, g.standby, g.primary} {
		w := &worker{node: node, primary: g.primary, rand: source(random, uint64(i)), tally: count}
		g.OK(w.connect(g.Ctx))
		defer w.close(context.WithoutCancel(g.Ctx))
		workers = append(workers, w)
	}

	moving, stop := context.WithCancel(g.Ctx)
	defer stop()
	background := new(errgroup.Group)
	background.Go(func() error { return g.mover(moving, source(random, 99)) })
	group, ctx := errgroup.WithContext(g.Ctx)
	for _, w := range workers {
		group.Go(func() error { return w.run(ctx, n/len(workers)) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	stop()
	g.OK(background.Wait())

	count.report(t)
	for _, name := range g.Rows(g.primary, "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'slotkeeper'::regnamespace") {
		if count.calls[name] == 0 {
			t.Errorf("nothing has called slotkeeper.%s", name)
		}
	}
	if count.codes["token"] == 0 {
		t.Error("no wait has ended in a token")
	}
	for _, was := range before {
		var pids []uint32
		for _, w := range workers {
			if w.node == was.node {
				pids = append(pids, w.conn.PgConn().PID())
			}
		}
		g.unharmed(was, pids)
	}
	if half := g.Rows(g.standby, bad); len(half) > 0 {
		t.Errorf("half slots on the standby: %q", half)
	}
	g.decodes(g.standby)
}
