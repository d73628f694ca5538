package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D10: all that computes anew what the slots need, at once, from as many sessions as
// have slots: hold, apply, stamp and drop on both nodes, slots made, read and dropped,
// checkpoints and VACUUM. Whoever asks for a lock that it has itself waits for ever,
// and all others for it: every call ends, and what the server goes by in the end is
// what the oldest slot needs.
func TestD10NothingWaitsForItself(t *testing.T) {
	t.Parallel()
	n := 2 * rounds(t, 15)
	g := newStage(t, 6*time.Minute+time.Duration(n)*2*time.Second, map[string]string{"max_replication_slots": "20"})
	g.Exec(g.primary, "SELECT pg_drop_replication_slot('foreign')") // it pins all that there is
	random := seed(t)
	g.controller(1, "me").all(g.standby, "made")
	before := []*witness{g.witness(g.primary), g.witness(g.standby)}

	moving, stop := context.WithCancel(g.Ctx)
	defer stop()
	background := new(errgroup.Group)
	for i, work := range []func(context.Context, *rand.Rand) error{g.mover, g.comer("comer1"), g.comer("comer2"), g.comer("comer3"), g.again("VACUUM pg_catalog.pg_class")} {
		background.Go(func() error { return work(moving, source(random, uint64(100+i))) })
	}
	count := newTally()
	callers := new(errgroup.Group)
	for i := range 8 {
		node := []*lab.Node{g.primary, g.standby}[i%2]
		callers.Go(func() error { return g.caller(node, n, source(random, uint64(i)), count) })
	}
	g.OK(callers.Wait())
	stop()
	g.OK(background.Wait())
	count.report(t)
	for _, code := range []string{"held", "moved", "made", "dropped"} {
		if count.codes[code] == 0 {
			t.Errorf("the scene is not set: nothing was %s", code)
		}
	}
	for _, was := range before {
		g.unharmed(was, nil)
	}
	g.whole(g.standby, "in the end")
	g.heldAlone()
}

// caller does so many rounds of what a controller does on a node, as fast as it
// can. No call may take longer than the patience of a test.
func (g *stage) caller(n *lab.Node, rounds int, r *rand.Rand, count *tally) error {
	conn, other := g.role(n), g.role(g.primary)
	for range rounds {
		v, err := look(g.Ctx, r, conn, other)
		if err != nil {
			return err
		}
		calls := []call{v.raise(), v.hold(v.originals), v.apply(v.originals), v.hold(v.some()), v.stamp(v.mirrors()...), v.drop(pick(r, g.slots...)), v.apply(v.originals)}
		if n == g.primary {
			calls = []call{v.raise(), v.hold(v.originals), v.mark(v.originals), v.hold(v.some()), v.stamp("slotkeeper_hold")}
		}
		for _, c := range calls {
			ctx, cancel := context.WithTimeout(g.Ctx, harness.Patience)
			all, err := codes(ctx, conn, c)
			late := ctx.Err() != nil
			cancel()
			if late {
				return errors.Join(fmt.Errorf("%s on %s does not end; all that wait there: %s", c.function, n.Name(), g.waiting(n)), err)
			}
			if err != nil {
				return fmt.Errorf("calling %s on %s: %w", c.function, n.Name(), err)
			}
			count.note(c.function, all, "")
		}
	}
	return nil
}

// waiting tells what the sessions of a server wait for, where it still answers.
func (g *stage) waiting(n *lab.Node) string {
	ctx, cancel := context.WithTimeout(g.Ctx, 10*time.Second)
	defer cancel()
	rows, err := n.DB("").Strings(ctx, "SELECT row(pid, backend_type, wait_event_type, wait_event, left(query, 60))::text FROM pg_stat_activity WHERE wait_event_type IN ('LWLock', 'Lock')")
	if err != nil {
		return err.Error()
	}
	return strings.Join(rows, "; ")
}
