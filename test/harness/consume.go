package harness

import (
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Consumer is a connected consumer of a slot that answers nothing.
type Consumer struct {
	scene *Scene
	node  *lab.Node
	conn  *pgconn.PgConn
}

// Consume streams from a slot of the plugin test_decoding until Stop or the
// test's end.
func (s *Scene) Consume(n *lab.Node, slot string) *Consumer {
	s.T.Helper()
	conn, err := pgconn.Connect(s.Ctx, n.Conninfo("", "")+" replication=database options='-c wal_sender_timeout=0'")
	s.OK(err)
	c := &Consumer{scene: s, node: n, conn: conn}
	s.T.Cleanup(c.Stop)
	s.OK(pglogrepl.StartReplication(s.Ctx, conn, slot, 0, pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication}))
	return c
}

// PID is its walsender's.
func (c *Consumer) PID() uint32 { return c.conn.PID() }

// Alive reports whether its walsender is there.
func (c *Consumer) Alive() bool {
	c.scene.T.Helper()
	var there bool
	c.scene.OK(c.node.QueryRow(c.scene.Ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE pid = $1)", int(c.PID())).Scan(&there))
	return there
}

// Stop ends the connection at once.
func (c *Consumer) Stop() {
	_ = c.conn.Conn().SetDeadline(time.Now()) // no goodbye: the server sees it end
	_ = c.conn.Conn().Close()
}
