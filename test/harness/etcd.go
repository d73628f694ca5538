package harness

import (
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Etcd starts an etcd of real processes beside the scene; it ends with the test.
func (s *Scene) Etcd(o lab.EtcdOptions) *lab.Etcd {
	s.T.Helper()
	e, err := lab.StartEtcd(s.Ctx, o)
	s.OK(err)
	s.T.Cleanup(func() {
		if s.T.Failed() {
			for _, m := range e.Members() {
				s.T.Logf("etcd's member %s:\n%s", m.Name(), m.LogTail(10))
			}
		}
		if err := e.Close(); err != nil {
			s.T.Errorf("closing etcd: %v", err)
		}
	})
	return e
}

// RunWith starts a controller over all nodes of the scene as the options say,
// and makes it the one that the scene's own methods speak of.
func (s *Scene) RunWith(o lab.DaemonOptions) *lab.Daemon {
	s.T.Helper()
	o.Binary, o.Members, o.Links = Binary(s.T), s.Nodes(), s.links
	d, err := s.Lab.StartDaemon(o)
	s.OK(err)
	s.Daemon = d
	return d
}

// Consumed makes a slot and moves it twice over a checkpoint, so that its
// restart_lsn has a snapshot file whatever else wrote to the catalogs when it was
// made.
func (s *Scene) Consumed(n *lab.Node, slot string) {
	s.T.Helper()
	s.Logical(n, slot)
	for range 2 {
		s.Exec(n, "CHECKPOINT")
		s.Exec(n, "SELECT count(*) FROM pg_logical_slot_get_changes('"+slot+"', NULL, NULL)")
	}
}
