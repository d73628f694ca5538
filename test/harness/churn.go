package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Reshape writes rows into table t (id int) in its old shape, changes its
// columns, and writes rows in its new shape: a decoder of the first ones needs
// the catalog as it was.
func (s *Scene) Reshape(n *lab.Node) {
	s.T.Helper()
	s.Exec(n, "INSERT INTO t SELECT generate_series(1, 10)")
	s.Exec(n, "ALTER TABLE t ADD COLUMN b text")
	s.Exec(n, "INSERT INTO t SELECT i, 'b' || i FROM generate_series(11, 20) i")
	s.Exec(n, "ALTER TABLE t DROP COLUMN id")
	s.Exec(n, "INSERT INTO t SELECT 'b' || i FROM generate_series(21, 30) i")
}

// Outdate reshapes table t, has the consumer of a slot (in the plugin
// test_decoding) confirm all of it, and removes the catalog rows that nothing pins:
// what a mirror of before needs is there only where a hold has kept it. It gives
// what the slot would have sent.
func (s *Scene) Outdate(n *lab.Node, slot string) []string {
	s.T.Helper()
	s.Reshape(n)
	rows := s.Peek(n, slot)
	s.Pass(n, slot)
	s.VacuumCatalogs(n)
	return rows
}

// Churn creates and drops 500 tables, each in a transaction of its own: the
// catalogs fill with dead rows.
func (s *Scene) Churn(n *lab.Node) {
	s.T.Helper()
	s.Exec(n, `DO $$ BEGIN
		FOR i IN 1..500 LOOP
			EXECUTE 'CREATE TABLE churn (a int, b int)';
			COMMIT;
			EXECUTE 'DROP TABLE churn';
			COMMIT;
		END LOOP;
	END $$`)
}

// VacuumCatalogs removes from the catalogs what nothing pins, and flushes the
// WAL of it: a VACUUM that has no transaction id leaves that to others, and a
// standby would not have it when the primary is killed.
func (s *Scene) VacuumCatalogs(n *lab.Node) {
	s.T.Helper()
	var names []string
	for _, name := range []string{"class", "attribute", "type", "depend", "index", "publication", "publication_rel"} {
		names = append(names, "pg_catalog.pg_"+name)
	}
	s.Exec(n, "VACUUM "+strings.Join(names, ", "))
	s.Exec(n, "SELECT pg_switch_wal()")
}

// Pass has the consumer of a slot (in the plugin test_decoding) confirm all there
// is, until the slot pins no catalog row of what has ended by now. It writes no
// checkpoint: a slot in the making leaves the record of the running transactions.
func (s *Scene) Pass(n *lab.Node, slot string) {
	s.T.Helper()
	s.pass(n, slot, func() { s.Get(n, slot) })
}

// Skip is Pass for a slot of any plugin, whose consumer throws all of it away.
func (s *Scene) Skip(n *lab.Node, slot string) {
	s.T.Helper()
	s.pass(n, slot, func() { s.Exec(n, fmt.Sprintf("SELECT pg_replication_slot_advance('%s', pg_current_wal_lsn())", slot)) })
}

func (s *Scene) pass(n *lab.Node, slot string, confirm func()) {
	s.T.Helper()
	horizon := s.Text(n, "SELECT pg_snapshot_xmin(pg_current_snapshot())")
	s.Wait("slot "+slot+" to pass "+horizon, func() (bool, string) {
		// Dropped at once: the end of its session is not waited for.
		s.Exec(n, "SELECT pg_create_logical_replication_slot('pass', 'test_decoding', true); SELECT pg_drop_replication_slot('pass')")
		confirm()
		at := s.Text(n, fmt.Sprintf("SELECT catalog_xmin FROM pg_replication_slots WHERE slot_name = '%s'", slot))
		passed := s.Text(n, fmt.Sprintf("SELECT %s >= %s", at, horizon))
		return passed == "true", "it pins from " + at
	})
}

// Same compares decoded rows with those wanted, in order.
func (s *Scene) Same(got, want []string) {
	s.T.Helper()
	if len(want) == 0 {
		s.T.Error("the scene is not set: no rows are wanted")
	}
	if !slices.Equal(got, want) {
		s.T.Errorf("%d rows came and %d are wanted:\n%q\nwanted:\n%q", len(got), len(want), got, want)
	}
}
