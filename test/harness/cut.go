package harness

import (
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// CutOff has a standby receive no WAL any more, until it Follows a node again.
func (s *Scene) CutOff(n *lab.Node) {
	s.T.Helper()
	s.OK(n.Set(s.Ctx, map[string]string{"primary_conninfo": ""}))
	s.Wait(n.Name()+" to be cut off", func() (bool, string) {
		left := s.Text(n, "SELECT count(*) FROM pg_stat_wal_receiver")
		return left == "0", "it streams"
	})
}
