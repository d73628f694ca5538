package postgres

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// What keeps restart_lsn back is the transaction that got its id first, a
// prepared one too.
func TestOldestWriter(t *testing.T) {
	admin := shared.admin(t, "postgres")
	exec1(t, admin, "CREATE TABLE written (id int)")
	finally(t, admin, "DROP TABLE written")
	s := session(t, shared.conninfo(""), superuser)
	read := func() cluster.Node {
		t.Helper()
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.Node
	}
	if n := read(); !n.NextXID.Normal() || n.FreezeMaxAge != 200_000_000 {
		t.Errorf("next id %s, freeze age %d", n.NextXID, n.FreezeMaxAge)
	}

	first, second := shared.admin(t, "postgres"), shared.admin(t, "postgres")
	exec1(t, first, "BEGIN")
	exec1(t, first, "INSERT INTO written VALUES (1)")
	exec1(t, second, "BEGIN")
	exec1(t, second, "INSERT INTO written VALUES (2)")
	want := cluster.XID(value[uint32](t, first, "SELECT backend_xid FROM pg_stat_activity WHERE pid = pg_backend_pid()"))
	n := read()
	got := n.OldestWriter.V
	if pid := int32(first.PgConn().PID()); got.PID != pid || got.XID != want || got.GID != "" {
		t.Errorf("it names %+v, want process %d with %s", got, pid, want)
	}
	if got.Started.IsZero() || time.Since(got.Started) > time.Hour || got.XID.Age(n.NextXID) < 2 {
		t.Errorf("it began at %s, %d transactions ago", got.Started, got.XID.Age(n.NextXID))
	}

	exec1(t, first, "PREPARE TRANSACTION 'stays'")
	got = read().OldestWriter.V
	if got.PID != 0 || got.GID != "stays" || got.XID != want {
		t.Errorf("it names %+v, want the prepared transaction with %s", got, want)
	}
	exec1(t, first, "ROLLBACK PREPARED 'stays'")
	if got = read().OldestWriter.V; got.PID != int32(second.PgConn().PID()) {
		t.Errorf("it names %+v, want process %d", got, second.PgConn().PID())
	}
	exec1(t, second, "ROLLBACK")
}
