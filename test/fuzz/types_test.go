package fuzz

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Somebody has altered the extension's types: each call is refused that takes or
// gives one, and the server stands.
func TestAlteredTypes(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Logical(s.A, "cdc1")
	const fence = "(SELECT ROW('fuzz', 'store', 1, 'me', system_identifier, timeline)::slotkeeper.fence FROM slotkeeper.node())"
	s.Exec(s.A, "SELECT slotkeeper.raise_fence("+fence+")")
	s.Exec(s.A, "SELECT slotkeeper.mark("+fence+", '{cdc1}', ARRAY(SELECT incarnation FROM slotkeeper.slots() WHERE name = 'cdc1'))")
	started := s.Text(s.A, "SELECT pg_postmaster_start_time()")
	change := "ARRAY[ROW('a', 'test_decoding', 5, false, NULL, '0/1000028', '0/1000028', '700', NULL, '(1,)', NULL, NULL)::slotkeeper.change]"
	want := "ARRAY[ROW('700', 'cdc1', '(1,)')::slotkeeper.want]"
	for _, c := range []struct{ alter, call string }{
		{"TYPE slotkeeper.incarnation ALTER ATTRIBUTE inode TYPE bigint", "slotkeeper.slots()"},
		{"TYPE slotkeeper.incarnation ADD ATTRIBUTE more text", "slotkeeper.slots()"},
		{"TYPE slotkeeper.marker ALTER ATTRIBUTE version TYPE text", "slotkeeper.slots()"},
		{"TYPE slotkeeper.marker DROP ATTRIBUTE way", "slotkeeper.slots()"},
		{"TYPE slotkeeper.marker ALTER ATTRIBUTE source TYPE integer", "slotkeeper.slots()"},
		{"TYPE slotkeeper.fence ALTER ATTRIBUTE epoch TYPE text", "slotkeeper.node()"},
		{"TYPE slotkeeper.fence ALTER ATTRIBUTE owner TYPE bigint", "slotkeeper.raise_fence(ROW('a', 'b', 1, 2, 'c', 3)::slotkeeper.fence)"},
		{"TYPE slotkeeper.outcome ALTER ATTRIBUTE restart_lsn TYPE text", "slotkeeper.drop(" + fence + ", '{a}')"},
		{"TYPE slotkeeper.outcome ADD ATTRIBUTE more text", "slotkeeper.hold(" + fence + ", 1, '{}', NULL)"},
		{"TYPE slotkeeper.change ALTER ATTRIBUTE source TYPE integer", "slotkeeper.apply(" + fence + ", ARRAY[ROW('a', 'test_decoding', 5, false, NULL, '0/1000028', '0/1000028', '700', NULL, 1, NULL, NULL)::slotkeeper.change], 1)"},
		{"TYPE slotkeeper.change ALTER ATTRIBUTE database_oid TYPE text", "slotkeeper.apply(" + fence + ", " + change + ", 1)"},
		{"TYPE slotkeeper.want ALTER ATTRIBUTE source TYPE bigint", "slotkeeper.hold(" + fence + ", 1, ARRAY[ROW('700', 'cdc1', 1)::slotkeeper.want], NULL)"},
		{"TYPE slotkeeper.want ALTER ATTRIBUTE slot_name TYPE text", "slotkeeper.hold(" + fence + ", 1, " + want + ", NULL)"},
	} {
		err := s.A.Exec(s.Ctx, fmt.Sprintf("BEGIN; ALTER %s; SELECT * FROM %s; ROLLBACK", c.alter, c.call))
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42804" {
			t.Errorf("after ALTER %s: %v", c.alter, err)
		}
	}
	if now := s.Text(s.A, "SELECT pg_postmaster_start_time()"); now != started {
		t.Error("the server was started again")
	}
	s.Exec(s.A, "SELECT * FROM slotkeeper.slots()")
}
