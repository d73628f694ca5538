package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// A standby is promoted at a random moment of apply, one standby after the other:
// the calls end in a refusal, the log fills with no error, and each slot under a
// consumer's name is proven and decodes.
func TestPromotions(t *testing.T) {
	t.Parallel()
	n := rounds(t, 3)
	g := newStage(t, 4*time.Minute+time.Duration(n)*30*time.Second, nil)
	r := source(seed(t), 2)
	ends, slots := map[string]int{}, 0
	for round := range n {
		node := g.standby
		if round > 0 {
			node = g.join(fmt.Sprintf("r%d", round))
		}
		g.passAll(node)
		before := len(g.log(node))
		last := make(chan string, 2)
		for range 2 {
			g.applier(node, r.Uint64(), last)
		}
		time.Sleep(time.Duration(r.IntN(80_000)) * time.Microsecond) // some moment
		g.promoted(node, func() {
			ends[<-last]++
			ends[<-last]++
		})
		g.whole(node, fmt.Sprintf("after promotion %d", round))
		slots += len(g.Rows(node, "SELECT name::text FROM slotkeeper.slots() WHERE kind = 'logical'"))
		if lines := strings.Count(g.log(node)[before:], "ERROR"); lines > 0 {
			t.Errorf("promotion %d leaves %d errors in the log:\n%s", round, lines, node.LogTail(20))
		}
		g.noDebris(node)
		g.OK(node.StopImmediate(g.Ctx))
		g.Exec(g.primary, fmt.Sprintf("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '%s' AND active_pid IS NULL", node.SlotName()))
	}
	t.Logf("%d promotions left %d slots; the calls ended by %s", n, slots, counts(ends))
	if slots == 0 || ends["a refusal"] == 0 {
		t.Error("the scene is not set: no slot was there, or no call was refused for the promotion")
	}
}

// applier makes, moves and drops mirrors on a standby until a call is refused for
// its promotion, and says how that ended.
func (g *stage) applier(n *lab.Node, seed uint64, last chan<- string) {
	g.T.Helper()
	conn, other := g.role(n), g.role(g.primary)
	r := rand.New(rand.NewPCG(seed, 1))
	v, err := look(g.Ctx, r, conn, other)
	g.OK(err)
	g.OK(other.Close(g.Ctx))
	go func() {
		defer func() { _ = conn.Close(context.WithoutCancel(g.Ctx)) }() // its server may be stopped
		for {
			for _, c := range []call{v.raise(), v.hold(v.originals), v.apply(v.originals), v.drop(g.slots[r.IntN(len(g.slots))])} {
				all, err := codes(g.Ctx, conn, c)
				var pg *pgconn.PgError
				switch {
				case errors.As(err, &pg):
					last <- "error " + pg.Code
					return
				case err != nil:
					last <- err.Error()
					return
				case contains(all, "not_in_recovery") || contains(all, "timeline_mismatch"):
					last <- "a refusal"
					return
				}
			}
			if g.Ctx.Err() != nil {
				last <- "it never ended"
				return
			}
		}
	}()
}
