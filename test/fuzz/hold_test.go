package fuzz

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// The hold of a primary is lowered and raised in a tight loop, while the slots that
// it is lowered for move, others come and go, and one VACUUM after the other removes
// from the catalogs what it may: none goes beyond what a call has answered "held"
// for. In the end the hold alone keeps what mirrors need, and they decode it.
func TestHoldLoop(t *testing.T) {
	t.Parallel()
	n := 20 * rounds(t, 15)
	g := newStage(t, 6*time.Minute+time.Duration(n)*500*time.Millisecond, nil)
	g.Exec(g.primary, "SELECT pg_drop_replication_slot('foreign')") // it pins all that there is
	random := seed(t)
	g.controller(1, "me").all(g.standby, "made")
	l := &loop{stage: g, rand: source(random, 1), conn: g.role(g.primary), seen: map[string]int{}, rounds: make(chan struct{})}

	ctx, stop := context.WithCancel(g.Ctx)
	defer stop()
	background := new(errgroup.Group)
	for i, work := range []func(context.Context, *rand.Rand) error{g.mover, g.comer("comer"), l.vacuums} {
		background.Go(func() error {
			defer stop() // an error of one ends all
			return work(ctx, source(random, uint64(i+2)))
		})
	}
	for round := 0; round < n && ctx.Err() == nil; round++ {
		v := l.look()
		switch round % 30 {
		case 0: // the oldest slot moves, and nothing but the hold keeps what it pinned
			l.hold(v, v.originals)
			l.until(ctx, "the oldest slot to move", v, func() cluster.XID { return oldest(l.look()) })
			l.vacuumed(ctx)
		case 15: // it moves, what it pinned is removed, and then asked for
			l.raise()
			l.until(ctx, "the oldest rows to be removed", v, l.promised.gone)
			l.hold(v, v.originals)
		default:
			l.hold(v, v.originals)
		}
		l.raise()
	}
	stop()
	g.OK(background.Wait())
	t.Logf("%d rounds: %s; of %d vacuums %d were held back by the hold alone", n, counts(l.seen), l.ran, l.heldBack)
	if l.heldBack == 0 || l.seen["lowered"] == 0 || l.seen["raised"] == 0 || l.seen["not_pinned"] == 0 {
		t.Error("the scene is not set: the hold was not lowered and raised, nothing depended on it, or no slot moved on")
	}
	g.heldAlone()
}

// loop is what lowers and raises, and what it has promised by that.
type loop struct {
	*stage
	rand     *rand.Rand
	conn     *pgx.Conn
	seen     map[string]int
	promised promise
	at       cluster.XID // where the last call has left the hold

	ran, heldBack int // of the vacuums; read when they have ended
	rounds        chan struct{}
}

// look sees what each slot pins now.
func (l *loop) look() *view {
	l.T.Helper()
	v, err := look(l.Ctx, l.rand, l.conn, l.conn)
	l.OK(err)
	return v
}

// raise has the hold go to the newest of all slots.
func (l *loop) raise() {
	l.T.Helper()
	v := l.look()
	l.hold(v, []seenSlot{slices.MaxFunc(v.originals, func(a, b seenSlot) int { return int(xid(a.xmin)) - int(xid(b.xmin)) })})
}

// until waits until something is beyond what the oldest of the slots seen pinned.
func (l *loop) until(ctx context.Context, what string, v *view, at func() cluster.XID) {
	l.T.Helper()
	was := oldest(v)
	l.Wait(what, func() (bool, string) {
		now := at()
		return ctx.Err() != nil || was.Precedes(now), "that is " + now.String() + ", it was " + was.String()
	})
}

func oldest(v *view) cluster.XID {
	return xid(slices.MinFunc(v.originals, func(a, b seenSlot) int { return int(xid(a.xmin)) - int(xid(b.xmin)) }).xmin)
}

func xid(text string) cluster.XID {
	x, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		panic(err) // the server's own number
	}
	return cluster.XID(x)
}

// hold asks for what these slots needed when they were looked at. From when the call is on its way the hold may
// be as late as the latest of it; when it is back, what it says is held is promised.
func (l *loop) hold(v *view, slots []seenSlot) {
	l.T.Helper()
	for _, s := range slots {
		l.promised.upTo(xid(s.xmin))
	}
	c := l.controller(1, "me")
	v.fence = fenceOf(c.epoch, c.owner, v.system, v.timeline)
	l.seen[c.ask(l.conn, v.raise())[0]]++
	call := v.hold(slots)
	all := c.ask(l.conn, call)
	var at cluster.XID // the oldest that is held
	for i, code := range all {
		l.seen[code]++
		if code != "held" && code != "not_pinned" {
			l.T.Fatalf("holding %s gives %q", slots[i].xmin, all)
		}
		if x := xid(slots[i].xmin); code == "held" && (at == 0 || x.Precedes(at)) {
			at = x
		}
	}
	switch {
	case at == 0:
		return
	case at.Precedes(l.at):
		l.seen["lowered"]++
	case l.at.Precedes(at):
		l.seen["raised"]++
	}
	l.at = at
	l.OK(l.promised.is(at))
}

// heldAlone makes mirrors, has their slots move past a change of the table, and
// VACUUM remove what only the hold keeps; the promoted standby has it all.
func (g *stage) heldAlone() {
	g.T.Helper()
	g.passAll(g.standby)
	g.controller(1, "me").all(g.standby, "made", "moved", "unchanged", "replaced")
	g.Reshape(g.primary)
	want := map[string][]string{}
	for _, slot := range g.slots {
		want[slot] = g.Peek(g.primary, slot)
	}
	for _, slot := range g.slots {
		g.Pass(g.primary, slot)
	}
	g.VacuumCatalogs(g.primary)
	g.OK(g.standby.WaitCatchup(g.Ctx, g.primary))
	g.OK(g.primary.Kill(g.Ctx))
	g.OK(g.standby.Promote(g.Ctx))
	for _, slot := range g.slots {
		g.noGap(g.standby, slot, g.Get(g.standby, slot), want[slot])
	}
}
