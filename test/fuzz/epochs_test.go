package fuzz

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// writing are the calls that an older controller must not get through.
func (v *view) writing() []call {
	names := append(v.mirrors(), "slotkeeper_hold")
	return []call{v.raise(), v.hold(v.originals), v.apply(v.originals), v.mark(v.originals), v.stamp(names...), v.drop(names...), v.remove()}
}

// Two controllers write at once, one epoch after the other: from the moment at
// which the later one's fence is raised, the older is refused in each call.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	n := rounds(t, 20)
	g := newStage(t, 4*time.Minute+time.Duration(n)*5*time.Second, nil)
	g.controller(1, "me").all(g.standby, "made")
	var refused, through atomic.Int64
	for _, node := range []*lab.Node{g.primary, g.standby} {
		for epoch := int64(2); epoch < int64(n)+2; epoch++ {
			g.takeOver(node, epoch, &refused, &through)
		}
	}
	g.whole(g.standby, "after the last")
	t.Logf("%d take-overs: the older got through %d times before, was refused %d times after", 2*n, through.Load(), refused.Load())
	if refused.Load() == 0 || through.Load() == 0 {
		t.Error("the scene is not set: the two did not meet")
	}
}

// takeOver has the controller of an epoch write on a node in a loop, and the one
// of the next take the node over.
func (g *stage) takeOver(n *lab.Node, epoch int64, refused, through *atomic.Int64) {
	g.T.Helper()
	older, later := g.controller(epoch, "me"), g.controller(epoch+1, "me")
	conn, other, third := g.role(n), g.role(g.primary), g.role(n)
	defer func() {
		for _, c := range []interface{ Close(context.Context) error }{conn, other, third} {
			_ = c.Close(g.Ctx) // the next take-over has its own
		}
	}()
	old, err := older.look(g.Ctx, conn, other)
	g.OK(err)
	next, err := later.look(g.Ctx, third, other)
	g.OK(err)
	if got := older.ask(conn, old.raise()); !contains([]string{"raised", "same"}, got[0]) {
		g.T.Fatalf("raising epoch %d on %s: %q", epoch, n.Name(), got)
	}
	var raised atomic.Bool
	group, ctx := errgroup.WithContext(g.Ctx)
	group.Go(func() error {
		for after := 0; after < 2; {
			known := raised.Load() // before the call: then it must be refused
			for _, c := range old.writing()[:6] {
				all, err := codes(ctx, conn, c)
				if err != nil {
					return err
				}
				if known && !onlyRefusals(all) {
					return fmt.Errorf("epoch %d got through %s on %s after epoch %d was raised: %q", epoch, c.function, n.Name(), epoch+1, all)
				}
				if known {
					refused.Add(1)
				} else {
					through.Add(1)
				}
			}
			if known {
				after++
			}
		}
		all, err := codes(ctx, conn, old.remove())
		if err == nil && !onlyRefusals(all) {
			err = fmt.Errorf("epoch %d removed the fence of epoch %d: %q", epoch, epoch+1, all)
		}
		return err
	})
	group.Go(func() error {
		for !raised.Load() {
			all, err := codes(ctx, third, next.raise())
			if err != nil {
				return err
			}
			raised.Store(len(all) == 1 && (all[0] == "raised" || all[0] == "same"))
		}
		for range 3 {
			for _, c := range []call{next.hold(next.originals), next.apply(next.originals)} {
				if _, err := codes(ctx, third, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
	g.OK(group.Wait())
}

// onlyRefusals: busy_fence is one as well, of a call that could not even look.
func onlyRefusals(all []string) bool {
	for _, code := range all {
		if code != "fenced" && code != "busy_fence" {
			return false
		}
	}
	return true
}
