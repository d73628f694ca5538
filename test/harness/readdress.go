package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Readdress has the running controller reach a member by another conninfo, from
// its next cycle on; "" for the member's own.
func (s *Scene) Readdress(n *lab.Node, conninfo string) {
	s.T.Helper()
	if conninfo == "" {
		conninfo = fmt.Sprintf("host=127.0.0.1 port=%d", n.Port())
	}
	text, err := os.ReadFile(s.Daemon.Config())
	s.OK(err)
	lines := strings.Split(string(text), "\n")
	found := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "- {name: "+n.Name()+", conninfo:") {
			lines[i], found = fmt.Sprintf("    - {name: %s, conninfo: \"%s\"}", n.Name(), conninfo), true
		}
	}
	if !found {
		s.T.Fatalf("the configuration has no member %s:\n%s", n.Name(), text)
	}
	s.OK(os.WriteFile(s.Daemon.Config(), []byte(strings.Join(lines, "\n")), 0o600))
	s.signalDaemon(syscall.SIGHUP)
}

// Workers are the controller's backends on a node.
func (s *Scene) Workers(n *lab.Node) []int {
	s.T.Helper()
	var pids []int
	for _, text := range s.Rows(n, "SELECT pid::text FROM pg_stat_activity WHERE usename = '"+lab.RoleName+"'") {
		pid, err := strconv.Atoi(text)
		s.OK(err)
		pids = append(pids, pid)
	}
	return pids
}
