package harness

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Still are settings under which a server writes no record that the test has
// not asked for; together with Scene.Still.
func Still() map[string]string {
	return map[string]string{"autovacuum": "off", "checkpoint_timeout": "1h", "max_prepared_transactions": "10"}
}

// Rewindable is Still for scenes in which a former primary comes back: no checkpoint
// takes the WAL that it goes on with after it was rewound.
func Rewindable() map[string]string {
	settings := Still()
	settings["wal_keep_size"] = "512MB"
	return settings
}

// Still stops the node's background writer, which writes a record of the
// running transactions every 15 s. From here on only CHECKPOINT does.
func (s *Scene) Still(n *lab.Node) {
	s.T.Helper()
	s.OK(syscall.Kill(s.Background(n, "background writer"), syscall.SIGSTOP))
}

// Moving ends that; without it a server cannot be stopped in order.
func (s *Scene) Moving(n *lab.Node) {
	s.T.Helper()
	s.OK(syscall.Kill(s.Background(n, "background writer"), syscall.SIGCONT))
}

// Session is a session of the superuser that stays open over several statements.
type Session struct {
	scene *Scene
	conn  *pgx.Conn
}

// Session opens one; it ends with the test.
func (s *Scene) Session(n *lab.Node) *Session {
	s.T.Helper()
	return s.SessionOf(n, "")
}

// SessionOf is one of a role.
func (s *Scene) SessionOf(n *lab.Node, role string) *Session {
	s.T.Helper()
	conn, err := n.Connect(s.Ctx, "", role)
	s.OK(err)
	s.T.Cleanup(func() { _ = conn.Close(s.T.Context()) }) // its server may be dead
	return &Session{scene: s, conn: conn}
}

// PID is the process that serves the session.
func (e *Session) PID() uint32 { return e.conn.PgConn().PID() }

// Backend reports whether a node has a process that serves a session.
func (s *Scene) Backend(n *lab.Node, pid uint32) bool {
	s.T.Helper()
	return s.Text(n, fmt.Sprintf("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %d)", pid)) == "true"
}

// Close ends the session.
func (e *Session) Close() {
	e.scene.T.Helper()
	e.scene.OK(e.conn.Close(e.scene.Ctx))
}

// Exec runs statements, several divided by semicolons.
func (e *Session) Exec(sql string) {
	e.scene.T.Helper()
	_, err := e.conn.PgConn().Exec(e.scene.Ctx, sql).ReadAll()
	e.scene.OK(err)
}

// BeginIdle begins a transaction that has an id, and nothing in the WAL.
func (e *Session) BeginIdle() {
	e.scene.T.Helper()
	e.Exec("BEGIN; SELECT pg_current_xact_id()")
}

func snapshots(n *lab.Node) string { return filepath.Join(n.DataDir(), "pg_logical", "snapshots") }

func snapshotPath(n *lab.Node, at cluster.LSN) string {
	return filepath.Join(snapshots(n), strings.ReplaceAll(at.String(), "/", "-")+".snap")
}

// TakeSnapshot removes the snapshot file at an LSN and gives its bytes.
func (s *Scene) TakeSnapshot(n *lab.Node, at cluster.LSN) []byte {
	s.T.Helper()
	bytes, err := os.ReadFile(snapshotPath(n, at))
	s.OK(err)
	s.OK(os.Remove(snapshotPath(n, at)))
	return bytes
}

// PutSnapshot writes a snapshot file as the server would.
func (s *Scene) PutSnapshot(n *lab.Node, at cluster.LSN, bytes []byte) {
	s.T.Helper()
	path := snapshotPath(n, at)
	s.OK(os.WriteFile(path+".new", bytes, 0o600))
	s.own(path + ".new")
	s.OK(os.Rename(path+".new", path))
}

// own gives a path to the user of the servers.
func (s *Scene) own(path string) {
	s.T.Helper()
	if os.Geteuid() != 0 {
		return
	}
	account, err := user.Lookup(lab.ServerUser)
	s.OK(err)
	uid, err := strconv.Atoi(account.Uid)
	s.OK(err)
	s.OK(os.Chown(path, uid, -1))
}

// NewestSnapshot gives the LSN and the bytes of the newest snapshot file.
func (s *Scene) NewestSnapshot(n *lab.Node) (cluster.LSN, []byte) {
	s.T.Helper()
	files, err := filepath.Glob(filepath.Join(snapshots(n), "*.snap"))
	s.OK(err)
	var all []cluster.LSN
	for _, file := range files {
		at, err := cluster.ParseLSN(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".snap"), "-", "/"))
		s.OK(err)
		all = append(all, at)
	}
	if len(all) == 0 {
		s.T.Fatalf("%s has no snapshot file", n.Name())
	}
	newest := slices.Max(all)
	bytes, err := os.ReadFile(snapshotPath(n, newest))
	s.OK(err)
	return newest, bytes
}

// Current is the end of what a primary has flushed.
func (s *Scene) Current(n *lab.Node) cluster.LSN {
	s.T.Helper()
	at, err := n.CurrentLSN(s.Ctx)
	s.OK(err)
	return at
}
