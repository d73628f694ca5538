package harness

import (
	"os"
	"path/filepath"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Fence is what a node's fence file holds: which controller may write there.
type Fence struct {
	Store, Owner string
	Epoch        int64
	Raised       time.Time
}

// Fence reads the fence of a node; its zero value where there is none.
func (s *Scene) Fence(n *lab.Node) Fence {
	s.T.Helper()
	var f Fence
	s.OK(n.QueryRow(s.Ctx, `SELECT coalesce((fence).store, ''), coalesce((fence).owner, ''), coalesce((fence).epoch, 0),
		coalesce(heartbeat, 'epoch') FROM slotkeeper.node()`).Scan(&f.Store, &f.Owner, &f.Epoch, &f.Raised))
	return f
}

// Owned waits until the fence of every node is raised by a controller.
func (s *Scene) Owned(by string) {
	s.T.Helper()
	for _, n := range s.Nodes() {
		s.Wait("the fence of "+n.Name()+" to be raised by "+by, func() (bool, string) {
			f := s.Fence(n)
			return f.Owner == by, "it is raised by " + f.Owner
		})
	}
}

// AgeFences makes every node's fence look as if it was raised last so long ago.
func (s *Scene) AgeFences(by time.Duration) {
	s.T.Helper()
	for _, n := range s.Nodes() {
		then := time.Now().Add(-by)
		s.OK(os.Chtimes(filepath.Join(n.DataDir(), "pg_replslot", "slotkeeper.fence"), then, then))
	}
}
