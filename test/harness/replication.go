package harness

import (
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Replication runs one command of the replication protocol on a node.
func (s *Scene) Replication(n *lab.Node, command string) {
	s.T.Helper()
	conn, err := pgconn.Connect(s.Ctx, n.Conninfo("", "")+" replication=database")
	s.OK(err)
	defer func() { _ = conn.Close(s.Ctx) }()
	_, err = conn.Exec(s.Ctx, command).ReadAll()
	s.OK(err)
}
