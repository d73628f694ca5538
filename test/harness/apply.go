package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// change is the change of a slot as the primary shows it, for SQL on a standby,
// with "snapshot" for the bytes of its snapshot file.
func (s *Scene) change(slot string) string {
	s.T.Helper()
	return s.Text(s.A, fmt.Sprintf(`SELECT format('(%%L, %%L, %%s, %%L, NULL, %%L, %%L, %%L, snapshot, %%L::slotkeeper.incarnation, NULL, %%L)::slotkeeper.change',
		name, plugin, database_oid, two_phase, restart_lsn, confirmed_flush_lsn, catalog_xmin, incarnation::text, restart_lsn)
		FROM slotkeeper.slots() WHERE name = '%s'`, slot))
}

// Apply calls the extension's apply for one slot with these bytes for its
// snapshot file, under the fence that is there, and gives what came of it.
func (s *Scene) Apply(on *lab.Node, slot string, snapshot []byte) (code, detail string) {
	s.T.Helper()
	if snapshot == nil {
		snapshot = []byte{}
	}
	err := on.QueryRow(s.Ctx, fmt.Sprintf(`SELECT o.code, coalesce(o.detail, '')
		FROM slotkeeper.node() n, (SELECT $1::bytea) b(snapshot),
		     LATERAL slotkeeper.apply(n.fence, ARRAY[%s], 1000000) o`, s.change(slot)), snapshot).Scan(&code, &detail)
	s.OK(err)
	return code, detail
}

// ApplyFlipped calls it once for each bit of the bytes, with that bit flipped,
// and gives the codes that came and how often: "bad_snapshot 1664".
func (s *Scene) ApplyFlipped(on *lab.Node, slot string, snapshot []byte) string {
	s.T.Helper()
	var codes string
	err := on.QueryRow(s.Ctx, fmt.Sprintf(`SELECT string_agg(code || ' ' || times, ', ') FROM (
		SELECT o.code, count(*) AS times
		FROM slotkeeper.node() n, generate_series(0, 8 * length($1::bytea) - 1) i,
		     LATERAL (SELECT set_bit($1::bytea, i, 1 - get_bit($1::bytea, i))) b(snapshot),
		     LATERAL slotkeeper.apply(n.fence, ARRAY[%s], 1000000) o
		GROUP BY 1) c`, s.change(slot)), snapshot).Scan(&codes)
	s.OK(err)
	return codes
}

// HasSnapshot reports whether a node has a snapshot file at an LSN.
func (s *Scene) HasSnapshot(n *lab.Node, at cluster.LSN) bool {
	s.T.Helper()
	_, err := os.Stat(snapshotPath(n, at))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.T.Fatal(err)
	}
	return err == nil
}
