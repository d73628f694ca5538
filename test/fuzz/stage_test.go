package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// stage is a primary on its second timeline and its standby, with four slots
// that are mirrored and others that are not ours.
type stage struct {
	*harness.Scene
	primary, standby *lab.Node
	slots            []string
}

// newStage sets it: node a was the primary once.
func newStage(t *testing.T, lasts time.Duration, settings map[string]string) *stage {
	t.Helper()
	all := map[string]string{"autovacuum": "off", "max_replication_slots": "12", "restart_after_crash": "on", "max_prepared_transactions": "5"}
	for name, value := range settings {
		all[name] = value
	}
	s := harness.New(t, harness.Options{Settings: all, Lasts: lasts})
	s.Exec(s.A, "CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 1000)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	g := &stage{Scene: s, primary: s.B, slots: []string{"cdc1", "cdc2", "cdc3", "cdc4"}}
	g.Logical(g.primary, append(g.slots, "foreign")...)
	g.Exec(g.primary, "SELECT pg_create_physical_replication_slot('foreign_phys', true)")
	g.standby = g.join("c")
	g.Exec(g.standby, "SELECT pg_create_physical_replication_slot('foreign_phys', true)")
	g.passAll(g.standby)
	return g
}

// passAll has all consumers confirm what there is, so that a standby has all WAL
// that their slots need, and waits until it has replayed it.
func (g *stage) passAll(n *lab.Node) {
	g.T.Helper()
	for range 2 {
		g.Exec(g.primary, "INSERT INTO t VALUES (3); CHECKPOINT")
		for _, slot := range g.slots {
			g.Get(g.primary, slot)
		}
	}
	g.OK(n.WaitCatchup(g.Ctx, g.primary))
}

// join adds a standby.
func (g *stage) join(name string) *lab.Node {
	g.T.Helper()
	n, err := g.Lab.AddStandby(g.Ctx, name, g.primary, lab.StandbyOptions{})
	g.OK(err)
	g.OK(n.WaitCatchup(g.Ctx, g.primary))
	return n
}

// role opens a session of the controller's role.
func (g *stage) role(n *lab.Node) *pgx.Conn {
	g.T.Helper()
	conn, err := n.Connect(g.Ctx, "", lab.RoleName)
	g.OK(err)
	g.T.Cleanup(func() { _ = conn.Close(context.WithoutCancel(g.Ctx)) }) // its server may be dead
	return conn
}

// mover writes and consumes on the primary until its context ends: slots move,
// catalogs change, and there is always a transaction open.
func (g *stage) mover(ctx context.Context, r *rand.Rand) error {
	var sessions []*pgx.Conn
	for range 3 {
		conn, err := g.primary.Connect(ctx, "", "")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the test is over
		sessions = append(sessions, conn)
	}
	for round := 0; ctx.Err() == nil; round++ {
		slot := pick(r, g.slots...)
		steps := []struct {
			session int
			sql     string
		}{
			{round % 2, "BEGIN; INSERT INTO t VALUES (2)"},
			{2, "CHECKPOINT"},
			{(round + 1) % 2, "COMMIT"},
			{2, "INSERT INTO t SELECT generate_series(1, 20); CREATE TABLE passing (); DROP TABLE passing"},
			{2, "CHECKPOINT"},
			{2, fmt.Sprintf("SELECT count(*) FROM pg_logical_slot_get_changes('%s', NULL, NULL)", slot)},
			{2, fmt.Sprintf("SELECT count(*) FROM pg_logical_slot_get_changes('%s', NULL, NULL)", slot)},
		}
		for _, step := range steps {
			if _, err := sessions[step.session].PgConn().Exec(ctx, step.sql).ReadAll(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("running %s: %w", step.sql, err)
			}
		}
	}
	return nil
}
