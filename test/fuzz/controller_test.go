package fuzz

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// controller does what a controller does, call by call, in the test's own time.
type controller struct {
	g     *stage
	epoch int64
	owner string
}

func (g *stage) controller(epoch int64, owner string) *controller {
	return &controller{g: g, epoch: epoch, owner: owner}
}

// look reads a node and the primary.
func (c *controller) look(ctx context.Context, node, primary *pgx.Conn) (*view, error) {
	v, err := look(ctx, source(1, 1), node, primary)
	if err != nil {
		return nil, err
	}
	v.fence = fenceOf(c.epoch, c.owner, v.system, v.timeline)
	return v, nil
}

// codes runs a call in a session and gives the codes of its rows.
func codes(ctx context.Context, conn *pgx.Conn, c call) ([]string, error) {
	rows, err := conn.Query(ctx, c.sql())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var code string
		var resume, detail *string
		err := row.Scan(&code, &resume, &detail)
		return code, err
	})
}

// ask runs a call and ends the test where it fails.
func (c *controller) ask(conn *pgx.Conn, what call) []string {
	c.g.T.Helper()
	all, err := codes(c.g.Ctx, conn, what)
	c.g.OK(err)
	return all
}

// afresh takes all of ours away from a node, whoever's fence it has.
func (c *controller) afresh(n *lab.Node) {
	c.g.T.Helper()
	c.g.Exec(n, "SELECT slotkeeper.remove_fence(n.fence) FROM slotkeeper.node() n WHERE n.fence IS NOT NULL")
	conn := c.g.role(n)
	v, err := c.look(c.g.Ctx, conn, c.g.role(c.g.primary))
	c.g.OK(err)
	names := v.mirrors()
	for _, s := range v.local {
		if s.marker == "hold" || s.marker == "wal" {
			names = append(names, s.name)
		}
	}
	c.ask(conn, v.raise())
	for _, code := range c.ask(conn, v.drop(names...)) {
		if code != "dropped" {
			c.g.T.Errorf("dropping ours on %s: %s", n.Name(), code)
		}
	}
}

// all holds and applies all slots on a standby and checks that each has one of
// these codes.
func (c *controller) all(n *lab.Node, want ...string) {
	c.g.T.Helper()
	conn := c.g.role(n)
	v, err := c.look(c.g.Ctx, conn, c.g.role(c.g.primary))
	c.g.OK(err)
	c.ask(conn, v.raise())
	c.ask(conn, v.hold(v.originals))
	got := c.ask(conn, v.apply(v.originals))
	if len(got) != len(c.g.slots) {
		c.g.T.Errorf("applying %d slots on %s gives %q", len(c.g.slots), n.Name(), got)
	}
	for _, code := range got {
		if !contains(want, code) {
			c.g.T.Errorf("applying on %s gives %q, want %v", n.Name(), got, want)
		}
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
