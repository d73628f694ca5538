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
