package cases

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Several databases, of names that need quoting, and slot names as long as they
// can be; slots that appear, move and vanish. All are SAFE, and each decodes in
// its own database after a failover.
func TestDatabasesAndNames(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	long := strings.Repeat("s", 63)
	slots := map[string]string{`My "DB"`: "one", `O'Neil x`: "two", `база`: long, "postgres": long[:62] + "_"}
	var names []string
	for database, slot := range slots {
		if database != "postgres" {
			s.Exec(s.A, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
		}
		s.OK(s.A.DB(database).Exec(s.Ctx, "CREATE TABLE t (id int)"))
		s.OK(s.A.DB(database).Exec(s.Ctx, "SELECT pg_create_logical_replication_slot('"+slot+"', 'test_decoding')"))
		names = append(names, slot)
	}
	s.OK(s.B.WaitCatchup(s.Ctx, s.A)) // or the first status has something to say of it
	s.RunEvery(100*time.Millisecond, "")
	for _, row := range s.Safe(names).Slots {
		if slots[row.Database] != row.Name {
			t.Errorf("%s is shown in database %q", row.Name, row.Database)
		}
	}
	if r := s.Slotkeeper("status", "-o", "tsv"); r.Code != 0 || strings.Count(r.Stdout, "SAFE") != 4 {
		t.Errorf("status ends with %d:\n%s", r.Code, r.Stdout)
	}
	if r := s.Slotkeeper("verify"); r.Code != 0 {
		t.Errorf("verify ends with %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}

	// One moves, one appears, one vanishes with its database.
	s.OK(s.A.DB("база").Exec(s.Ctx, "INSERT INTO t VALUES (0)"))
	s.OK(s.A.DB("база").Exec(s.Ctx, "SELECT count(*) FROM pg_logical_slot_get_changes('"+long+"', NULL, NULL)"))
	s.Mirrored(long, s.B)
	s.OK(s.A.DB(`My "DB"`).Exec(s.Ctx, "SELECT pg_create_logical_replication_slot('fresh', 'test_decoding')"))
	s.Safe([]string{"fresh"})
	s.Exec(s.A, "SELECT pg_drop_replication_slot('two')")
	s.Exec(s.A, `DROP DATABASE "O'Neil x"`)
	s.Wait("the mirror of a dropped slot to go", func() (bool, string) { return !s.Has(s.B, "two"), "it is there" })
	delete(slots, `O'Neil x`)
	s.Safe([]string{"fresh", "one", long})
	s.NoComplaints("feedback_off", "no_safe_candidate") // a new slot waits for the replay of a busy machine

	for database := range slots {
		s.OK(s.A.DB(database).Exec(s.Ctx, "INSERT INTO t VALUES (1)"))
	}
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	for database, slot := range slots {
		rows, err := s.B.DB(database).Strings(s.Ctx, "SELECT data FROM pg_logical_slot_get_changes('"+slot+"', NULL, NULL) WHERE data LIKE 'table%'")
		s.OK(err)
		s.Same(rows, []string{"table public.t: INSERT: id[integer]:1"})
	}
	left := s.Rows(s.B, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical'")
	if want := 4; len(left) != want || !slices.Contains(left, "fresh") {
		t.Errorf("the new primary has %q, want %d slots", left, want)
	}
}

// The extension may live in a database of such a name as well.
func TestDatabaseOfTheExtension(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	s.Logical(s.A, "cdc")
	database := `O'Neil "x" база`
	s.Exec(s.A, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
	s.OK(s.A.DB(database).Exec(s.Ctx, `CREATE EXTENSION slotkeeper; GRANT USAGE ON SCHEMA slotkeeper TO slotkeeper;
		GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO slotkeeper`))
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	config := s.Config(harness.Postgres{Database: database})
	if r := harness.Command(t, s.Ctx, "sync", "--config", config); r.Code != 0 || !strings.Contains(r.Stderr, "1 of 1 pairs") {
		t.Errorf("sync ends with %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if !s.Has(s.B, "cdc") {
		t.Error("there is no mirror")
	}
}
