package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A standby's restartpoints remove WAL and snapshots while apply runs in a loop,
// also with reads of long ago: what is gone is told, and no mirror promises it.
func TestRestartpoints(t *testing.T) {
	t.Parallel()
	n := rounds(t, 15)
	g := newStage(t, 4*time.Minute+time.Duration(n)*10*time.Second, harness.SmallWAL())
	r := source(seed(t), 3)
	g.Exec(g.standby, "SELECT pg_drop_replication_slot('foreign_phys')") // it keeps all WAL
	ctx, stop := context.WithCancel(g.Ctx)
	defer stop()
	background := new(errgroup.Group)
	background.Go(func() error { return g.checkpoints(ctx) })

	conn, other := g.role(g.standby), g.role(g.primary)
	seen := map[string]int{}
	var old []*view
	open := []*harness.Session{g.Session(g.primary), g.Session(g.primary)}
	for round := range n {
		if round%3 == 2 {
			g.removeWAL()
		}
		g.overlap(r, open, round)
		g.OK(g.standby.WaitCatchup(g.Ctx, g.primary))
		v, err := look(g.Ctx, r, conn, other)
		g.OK(err)
		old = append(old[max(0, len(old)-4):], v)
		g.applyOld(conn, r, old, seen)
	}
	stop()
	g.OK(background.Wait())
	open[(n+1)%2].Exec("COMMIT")
	g.passAll(g.standby)
	g.controller(1, "me").all(g.standby, "made", "moved", "unchanged")
	t.Logf("%d rounds: %s", n, counts(seen))
	if seen["wal_missing"] == 0 || seen["no_consistent_point"] == 0 || seen["made"] == 0 {
		t.Error("the scene is not set: nothing was made, or nothing was gone")
	}
	g.keepsItsWord()
	g.promoted(g.standby)
}

// overlap moves most slots of the primary on. There is always a transaction open,
// so that only a snapshot file proves most positions.
func (g *stage) overlap(r *rand.Rand, open []*harness.Session, round int) {
	g.T.Helper()
	open[round%2].Exec("BEGIN; INSERT INTO t VALUES (2)")
	g.Exec(g.primary, "CHECKPOINT")
	if round > 0 {
		open[(round+1)%2].Exec("COMMIT")
	}
	g.Exec(g.primary, "INSERT INTO t VALUES (0); CHECKPOINT")
	for _, slot := range g.slots {
		if r.IntN(3) > 0 {
			g.Get(g.primary, slot)
			g.Get(g.primary, slot) // restart_lsn follows a call later
		}
	}
}

// removeWAL drops the mirrors, and has the standby remove what they have kept.
func (g *stage) removeWAL() {
	g.T.Helper()
	g.controller(1, "me").afresh(g.standby)
	for range 2 {
		g.Exec(g.primary, "INSERT INTO t VALUES (0); SELECT pg_switch_wal()")
		g.Exec(g.primary, "CHECKPOINT")
		g.OK(g.standby.WaitCatchup(g.Ctx, g.primary))
		g.Exec(g.standby, "CHECKPOINT")
	}
}

// checkpoints has the standby make one restartpoint after the other.
func (g *stage) checkpoints(ctx context.Context) error {
	conn, err := g.standby.Connect(ctx, "", "")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the test is over
	for ctx.Err() == nil {
		if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil && ctx.Err() == nil {
			return fmt.Errorf("asking for a restartpoint: %w", err)
		}
	}
	return nil
}

// applyOld applies the reads, some of long ago and some without their snapshots
// among them, drops mirrors in between, and counts what comes of it.
func (g *stage) applyOld(conn *pgx.Conn, r *rand.Rand, old []*view, seen map[string]int) {
	g.T.Helper()
	now := old[len(old)-1]
	past := withoutFiles(old[r.IntN(len(old))])
	bare := withoutFiles(now)
	c := g.controller(1, "me")
	for _, what := range []call{
		now.raise(), past.hold(past.originals), past.apply(past.originals), now.hold(now.originals), now.drop(g.slots[:2]...), bare.apply(bare.originals),
		now.apply(now.some()), past.apply(past.some()), now.apply(now.originals),
	} {
		for _, code := range c.ask(conn, what) {
			seen[code]++
		}
	}
}

// withoutFiles gives a read that lacks the bytes of all snapshots.
func withoutFiles(v *view) *view {
	bare := *v
	bare.originals = append([]seenSlot(nil), v.originals...)
	for i := range bare.originals {
		change := &bare.originals[i].change
		change.fields = append([]arg(nil), change.fields...)
		for f := range change.fields {
			if change.fields[f].kind == aSnapshot {
				change.fields[f].sql = "NULL"
			}
		}
	}
	return &bare
}

// keepsItsWord looks at each mirror when all restartpoints have ended: the WAL and
// the file that it rests on are there, and a walk proves it.
func (g *stage) keepsItsWord() {
	g.T.Helper()
	broken := g.Rows(g.standby, `SELECT row(name, restart_lsn, wal_ok, snapshot, (marker).way)::text FROM slotkeeper.slots()
		WHERE kind = 'logical' AND NOT (wal_ok AND ((marker).way NOT IN ('file', 'later_file') OR snapshot = 'valid'))`)
	if len(broken) > 0 {
		g.T.Errorf("mirrors promise what is gone: %q", broken)
	}
	if len(g.Rows(g.standby, "SELECT name::text FROM slotkeeper.slots() WHERE kind = 'logical'")) == 0 {
		g.T.Error("the scene is not set: no mirror is left")
	}
	g.whole(g.standby, "after the restartpoints")
}
