package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D08: DROP DATABASE is replayed while slots in it are made and moved. Without
// a lock on the database the standby shuts down; without a look at its directory
// a slot stays on a database that is gone.
func TestD08DropDatabase(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.RunEvery(20*time.Millisecond, "")
	started := s.Text(s.B, "SELECT pg_postmaster_start_time()")
	made := 0
	for round := range 20 {
		s.Exec(s.A, "CREATE DATABASE d")
		db := s.A.DB("d")
		s.OK(db.Exec(s.Ctx, "SELECT pg_create_logical_replication_slot('d' || i, 'test_decoding') FROM generate_series(1, 3) i"))
		// From the moment when the first one is there, the others are being made.
		// In every other round they move meanwhile, too.
		s.Wait("a mirror", func() (bool, string) { return s.Has(s.B, "d1"), fmt.Sprintf("none in round %d", round) })
		if round%2 == 1 {
			s.Exec(s.A, "CHECKPOINT")
			s.OK(db.Exec(s.Ctx, "SELECT count(*) FROM pg_replication_slots s, pg_logical_slot_get_changes(s.slot_name, NULL, NULL) WHERE s.database = 'd'"))
		}
		made += len(s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots WHERE database = 'd'"))
		s.Exec(s.A, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = 'd'")
		s.Exec(s.A, "DROP DATABASE d")
		s.OK(s.B.WaitCatchup(s.Ctx, s.A))
		if left := s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical'"); len(left) > 0 {
			t.Fatalf("round %d leaves %q on a database that is gone", round, left)
		}
	}
	if made < 20 {
		t.Errorf("the scene is not set: %d mirrors were there in 20 rounds", made)
	}
	if now := s.Text(s.B, "SELECT pg_postmaster_start_time()"); now != started {
		t.Error("the standby was restarted")
	}
	s.Logical(s.A, "cdc")
	s.Safe([]string{"cdc"})
}
