package postgres

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestInheritedSettingsAreOverridden(t *testing.T) {
	admin := shared.admin(t, "postgres")
	role(t, admin, "hindered", "")
	for _, sql := range Grants("hindered") {
		exec1(t, admin, sql)
	}
	for _, set := range []string{
		"statement_timeout = '1ms'", "lock_timeout = '1ms'",
		"default_transaction_read_only = on", "search_path = nowhere", "synchronous_commit = remote_apply",
		"client_encoding = 'LATIN1'", "datestyle = 'German'", "bytea_output = escape", "row_security = on",
	} {
		exec1(t, admin, "ALTER ROLE hindered SET "+set)
	}
	// 13 does not know it
	hasIdle := value[bool](t, admin, "SELECT count(*) > 0 FROM pg_settings WHERE name = 'idle_session_timeout'")
	if hasIdle {
		exec1(t, admin, "ALTER ROLE hindered SET idle_session_timeout = '1ms'")
	}
	o := superuser
	o.User = "hindered"
	s := session(t, shared.conninfo("options='-c statement_timeout=1ms'"), o)
	for range 2 {
		if _, err := s.Read(patient(t)); err != nil {
			t.Fatalf("Read gave %v", err)
		}
	}
	want := map[string]string{
		"application_name": "slotkeeper", "statement_timeout": "10min", "lock_timeout": "20s",
		"default_transaction_read_only": "off", "search_path": "pg_catalog", "synchronous_commit": "local",
		"client_encoding": "UTF8", "row_security": "off",
	}
	if hasIdle {
		want["idle_session_timeout"] = "0"
	}
	for name, value := range want {
		if got := setting(t, s, name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
}

func TestSettingsThatTheServerDoesNotKnow(t *testing.T) {
	s := session(t, shared.conninfo(""), superuser)
	s.newer = map[string]string{"setting_of_a_later_major": "0"}
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read gave %v, want a connection without the setting", err)
	}
	if got := setting(t, s, "search_path"); got != "pg_catalog" {
		t.Errorf("search_path = %q: the other settings are gone too", got)
	}
}

func setting(t *testing.T, s *Session, name string) (value string) {
	t.Helper()
	err := s.Query(t.Context(), "showing", "SELECT current_setting($1)", func(rows pgx.Rows) error { return rows.Scan(&value) }, name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestDatabaseNames(t *testing.T) {
	for i, name := range []string{`My "DB"`, `O'Neil x`, `база`, `a\b`} {
		t.Run(name, func(t *testing.T) {
			there := database(t, name, true)
			slot := "named_" + strconv.Itoa(i)
			exec1(t, there, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", slot)
			finally(t, there, "SELECT pg_drop_replication_slot('"+slot+"')")
			o := superuser
			o.DBName = name
			url := "postgres://127.0.0.1:" + strconv.Itoa(shared.port) + "/?sslmode=disable"
			for _, conninfo := range []string{shared.conninfo(""), url, shared.conninfo("dbname=" + quoteValue(name))} {
				r, err := session(t, conninfo, o).Read(patient(t))
				if err != nil {
					t.Fatalf("Read by %s gave %v", conninfo, err)
				}
				if got := slotNamed(r, slot).Database; got != name {
					t.Errorf("by %s the slot's database is %q, want %q", conninfo, got, name)
				}
			}
		})
	}
}

func slotNamed(r Read, name string) cluster.Slot {
	for _, s := range r.Slots {
		if s.Name == name {
			return s
		}
	}
	return cluster.Slot{}
}
