package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// victim is a session that calls one function after the other until it dies.
type victim struct {
	conn *pgx.Conn
	last atomic.Value // the function that it was in
	done chan struct{}
}

// work begins such a session. Its mirrors come, move, are stamped and go.
func (g *stage) work(n *lab.Node, r *rand.Rand) *victim {
	g.T.Helper()
	conn, other := g.role(n), g.role(g.primary)
	v, err := look(g.Ctx, r, conn, other)
	g.OK(err)
	w := &victim{conn: conn, done: make(chan struct{})}
	w.last.Store("nothing")
	go func() {
		defer close(w.done)
		for generation := v.generation; ; generation++ {
			v.generation = generation
			held := v.hold(v.originals)
			if n != g.primary {
				held.args[3].sql = lit(pick(r, "0/0", v.originals[0].restart))
			}
			for _, c := range []call{v.raise(), v.mark(v.originals), held, v.apply(v.originals), v.stamp(v.mirrors()...), v.apply(v.some()), v.drop(g.slots[r.IntN(len(g.slots))])} {
				w.last.Store(c.function)
				if _, err := codes(g.Ctx, conn, c); err != nil {
					return
				}
			}
		}
	}()
	return w
}

// kills are the ways in which a server's work ends at a random moment.
func (g *stage) kills(n *lab.Node, w *victim) map[string]func() {
	pid := int(w.conn.PgConn().PID())
	return map[string]func(){
		"its backend":    func() { g.Crash(n, func() { g.Kill9(pid) }) },
		"all of it":      func() { g.OK(n.Kill(g.Ctx)); g.OK(n.Start(g.Ctx)) },
		"it at once":     func() { g.OK(n.StopImmediate(g.Ctx)); g.OK(n.Start(g.Ctx)) },
		"another's work": func() { g.CrashBackend(n) },
	}
}

// Kills (SIGKILL) of a backend and of the whole server, and immediate shutdowns,
// at random moments of apply, hold, drop and stamp: the server starts again, each
// slot is absent or proven, no temporary file is left once somebody has called.
func TestKills(t *testing.T) {
	t.Parallel()
	n := rounds(t, 10)
	g := newStage(t, 4*time.Minute+time.Duration(n)*20*time.Second, nil)
	r := source(seed(t), 1)
	ways := []string{"its backend", "all of it", "its backend", "it at once", "another's work"}
	aims := []string{"apply", "hold", "drop"}
	hits := map[string]int{}
	for round := range n {
		node := g.standby
		if round%5 == 4 {
			node = g.primary
		}
		g.turn(r)
		w := g.work(node, r)
		time.Sleep(time.Duration(r.IntN(60_000)) * time.Microsecond) // some moment
		if node == g.standby {
			g.isIn(w, aims[round%len(aims)]) // most of the time goes by in apply
			time.Sleep(time.Duration(r.IntN(2)*r.IntN(3_000)) * time.Microsecond)
		}
		in := w.last.Load().(string)
		g.kills(node, w)[ways[r.IntN(len(ways))]]()
		<-w.done
		hits[in]++
		g.afterKill(node, fmt.Sprintf("after kill %d, in %s", round, in))
	}
	t.Logf("%d kills, in %s", n, counts(hits))
	g.passAll(g.standby)
	g.controller(1, "me").all(g.standby, "made", "moved", "unchanged", "replaced")
	g.whole(g.standby, "in the end")
	g.promoted(g.standby)
}

// isIn waits until a session is in a call of this function.
func (g *stage) isIn(w *victim, function string) {
	g.T.Helper()
	deadline := time.Now().Add(harness.Patience)
	for w.last.Load() != function {
		select {
		case <-w.done:
			g.T.Fatalf("the session that was to be killed in %s has ended in %s by itself", function, w.last.Load())
		case <-time.After(20 * time.Microsecond):
		}
		if time.Now().After(deadline) {
			g.T.Fatalf("the session that is to be killed is in %s for long, never in %s", w.last.Load(), function)
		}
	}
}

// turn moves a slot of the primary on, so that there is something to apply.
func (g *stage) turn(r *rand.Rand) {
	g.T.Helper()
	g.Exec(g.primary, "INSERT INTO t VALUES (3); CREATE TABLE passing (); DROP TABLE passing; CHECKPOINT")
	g.Get(g.primary, g.slots[r.IntN(len(g.slots))])
}

func (g *stage) afterKill(n *lab.Node, when string) {
	g.T.Helper()
	if n == g.primary {
		if unsaved := g.Rows(n, "SELECT name::text FROM slotkeeper.slots() WHERE (NOT saved OR temporary) AND name !~ '^lab_'"); len(unsaved) > 0 {
			g.T.Errorf("%s, %s has unsaved slots: %q", when, n.Name(), unsaved)
		}
		for _, slot := range g.slots {
			if !g.Has(n, slot) {
				g.T.Errorf("%s, the primary has lost slot %s", when, slot)
			}
		}
		g.OK(g.standby.WaitStreaming(g.Ctx))
	} else {
		g.OK(n.WaitStreaming(g.Ctx))
		g.OK(n.WaitCatchup(g.Ctx, g.primary))
		g.whole(n, when)
	}
	c := g.controller(1, "me")
	conn := g.role(n)
	v, err := c.look(g.Ctx, conn, g.role(g.primary))
	g.OK(err)
	c.ask(conn, v.raise())
	g.OK(conn.Close(context.WithoutCancel(g.Ctx)))
	g.noDebris(n)
}
