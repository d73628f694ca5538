package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Postgres is how the command line gets to the servers; "" is the controller's
// role and the database postgres.
type Postgres struct {
	User, Database string
}

// Config writes a configuration over these nodes (none given: all of the scene)
// for a command without a daemon, and gives its path. Its embedded etcd lies
// beside it.
func (s *Scene) Config(p Postgres, nodes ...*lab.Node) string {
	s.T.Helper()
	path := filepath.Join(s.T.TempDir(), "slotkeeper.yaml")
	s.Reconfigure(path, p, nodes...)
	return path
}

// Reconfigure writes it anew; the etcd is the same.
func (s *Scene) Reconfigure(path string, p Postgres, nodes ...*lab.Node) {
	s.T.Helper()
	if len(nodes) == 0 {
		nodes = s.Nodes()
	}
	if p.User == "" {
		p.User = lab.RoleName
	}
	if p.Database == "" {
		p.Database = "postgres"
	}
	quote := func(word string) string { return "'" + strings.ReplaceAll(word, "'", "''") + "'" }
	text := "scope: lab\nname: lab\nhttp: {listen: ''}\netcd: {data_dir: ./etcd}\n"
	text += fmt.Sprintf("postgres: {user: %s, dbname: %s, sslmode: disable}\ncluster:\n  source: static\n  members:\n", quote(p.User), quote(p.Database))
	for _, n := range nodes {
		text += fmt.Sprintf("    - {name: %s, conninfo: 'host=127.0.0.1 port=%d'}\n", n.Name(), n.Port())
	}
	s.OK(os.WriteFile(path, []byte(text), 0o600))
}

// LockOut has a server refuse a role by a line of pg_hba.conf.
func (s *Scene) LockOut(n *lab.Node, role string) {
	s.T.Helper()
	path := filepath.Join(n.DataDir(), "pg_hba.conf")
	rest, err := os.ReadFile(path)
	s.OK(err)
	s.OK(os.WriteFile(path, append([]byte("host all "+role+" all reject\n"), rest...), 0o600))
	s.OK(n.Reload(s.Ctx))
	s.Wait("the line to be in force", func() (bool, string) {
		conn, err := n.Connect(s.Ctx, "", role)
		if err == nil {
			_ = conn.Close(s.Ctx)
		}
		return err != nil, role + " gets in"
	})
}
