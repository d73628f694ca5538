package harness

import (
	"fmt"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Logical makes a logical slot of the plugin test_decoding on a node.
func (s *Scene) Logical(n *lab.Node, names ...string) {
	s.T.Helper()
	for _, name := range names {
		s.Exec(n, fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'test_decoding')", name))
	}
}

// Peek decodes from a slot without consuming and gives the changes of rows, in
// order, without transaction borders.
func (s *Scene) Peek(n *lab.Node, slot string) []string {
	s.T.Helper()
	return s.decode(n, "pg_logical_slot_peek_changes", slot)
}

// Get consumes from a slot all there is, and gives the changes of rows.
func (s *Scene) Get(n *lab.Node, slot string) []string {
	s.T.Helper()
	return s.decode(n, "pg_logical_slot_get_changes", slot)
}

func (s *Scene) decode(n *lab.Node, function, slot string) []string {
	s.T.Helper()
	rows := s.Rows(n, fmt.Sprintf("SELECT data FROM %s('%s', NULL, NULL, 'include-xids', '0')", function, slot))
	changes := rows[:0]
	for _, row := range rows {
		if row != "BEGIN" && row != "COMMIT" && !strings.HasPrefix(row, "BEGIN ") && !strings.HasPrefix(row, "COMMIT ") {
			changes = append(changes, row)
		}
	}
	return changes
}

// Has reports whether the node has a slot of that name.
func (s *Scene) Has(n *lab.Node, slot string) bool {
	s.T.Helper()
	return s.Text(n, fmt.Sprintf("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '%s'", slot)) == "1"
}

// FailOver kills the primary, promotes a standby and gives it. The controller,
// where one runs, sees it by itself.
func (s *Scene) FailOver(to *lab.Node) {
	s.T.Helper()
	s.OK(s.A.Kill(s.Ctx))
	s.OK(to.Promote(s.Ctx))
}
