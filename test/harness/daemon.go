package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Logged waits until the controller's log says something.
func (s *Scene) Logged(text string) {
	s.T.Helper()
	s.Wait("the controller to log "+text, func() (bool, string) {
		return strings.Contains(s.Daemon.LogTail(10000), text), "it has not"
	})
}

// KillDaemon ends the controller by SIGKILL.
func (s *Scene) KillDaemon() {
	s.T.Helper()
	s.signalDaemon(syscall.SIGKILL)
	s.Wait("the controller to end", func() (bool, string) {
		select {
		case <-s.Daemon.Exited():
			return true, ""
		default:
			return false, "it runs"
		}
	})
}

// FreezeAtRest is FreezeDaemon between two cycles: when it goes on it knows nothing
// that it has read before. One that is under way would apply what it has decided.
func (s *Scene) FreezeAtRest() {
	s.T.Helper()
	s.Wait("the controller to rest", func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "it does not answer"
		}
		s.FreezeDaemon()
		for _, n := range s.Nodes() {
			var since int
			s.OK(n.QueryRow(s.Ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE usename = $1 AND query_start > $2 AND query !~ 'wait_for_change'`, lab.RoleName, doc.At).Scan(&since))
			if since > 0 {
				s.ThawDaemon()
				return false, "a cycle is under way"
			}
		}
		return true, ""
	})
}

// ForgetAll removes the data of the controller's etcd, and the fences on all
// nodes, which a controller with another etcd must not pass.
func (s *Scene) ForgetAll() {
	s.T.Helper()
	s.OK(os.RemoveAll(filepath.Join(filepath.Dir(s.Daemon.Config()), "etcd")))
	for _, n := range s.Nodes() {
		s.OK(os.RemoveAll(filepath.Join(n.DataDir(), "pg_replslot", "slotkeeper.fence")))
	}
}

// Shut keeps the controller out of a node; all others still reach it.
func (s *Scene) Shut(n *lab.Node) {
	s.T.Helper()
	hba := filepath.Join(n.DataDir(), "pg_hba.conf")
	text, err := os.ReadFile(hba)
	s.OK(err)
	s.OK(os.WriteFile(hba, append([]byte(shut), text...), 0o600))
	s.OK(n.Reload(s.Ctx))
	s.Wait("the controller to be shut out of "+n.Name(), func() (bool, string) {
		left := s.Text(n, fmt.Sprintf("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '%s'", lab.RoleName))
		_, err := n.Connect(s.Ctx, "", lab.RoleName)
		return left == "0" && err != nil, left + " sessions are left"
	})
}

// Open undoes Shut.
func (s *Scene) Open(n *lab.Node) {
	s.T.Helper()
	hba := filepath.Join(n.DataDir(), "pg_hba.conf")
	text, err := os.ReadFile(hba)
	s.OK(err)
	s.OK(os.WriteFile(hba, []byte(strings.TrimPrefix(string(text), shut)), 0o600))
	s.OK(n.Reload(s.Ctx))
}

const shut = "host all " + lab.RoleName + " all reject\n"
