package postgres

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// faulty expects a read to fail for a reason, with words in the sentence and
// in the hint.
func faulty(t *testing.T, s *Session, reason string, sentence, hint []string) {
	t.Helper()
	_, err := s.Read(patient(t))
	if err == nil {
		t.Fatal("Read gave no error")
	}
	if got := Classify(err); got != reason {
		t.Errorf("Classify = %q, want %q", got, reason)
	}
	message, advice := Explain(err, "a")
	for _, w := range append([]string{`"a"`}, sentence...) {
		if !strings.Contains(message, w) {
			t.Errorf("the sentence lacks %q: %s", w, message)
		}
	}
	for _, w := range hint {
		if !strings.Contains(advice, w) {
			t.Errorf("the hint lacks %q: %s", w, advice)
		}
	}
	if strings.ContainsAny(message+advice, "\n\t") {
		t.Errorf("more than one line: %q %q", message, advice)
	}
}

func as(user, database string) Options {
	o := superuser
	o.User, o.DBName = user, database
	return o
}

func at() string { return "127.0.0.1:" + strconv.Itoa(shared.port) }

func TestMissingExtension(t *testing.T) {
	there := database(t, "bare", false)
	s := session(t, shared.conninfo(""), as("postgres", "bare"))
	faulty(t, s, ExtensionUnavailable, []string{at(), `"bare"`, `"postgres"`},
		[]string{"CREATE EXTENSION slotkeeper", `"bare"`, "primary", `GRANT USAGE ON SCHEMA slotkeeper TO "postgres";`})
	exec1(t, there, "CREATE EXTENSION slotkeeper")
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read after CREATE EXTENSION gave %v", err)
	}
}

func TestFunctionThatTheLibraryLacks(t *testing.T) {
	there := database(t, "newer", true)
	library := value[string](t, there, "SELECT probin FROM pg_proc WHERE oid = 'slotkeeper.slots()'::regprocedure")
	rename := func(symbol, library string) {
		exec1(t, there, "UPDATE pg_proc SET prosrc = $1, probin = $2 WHERE oid = 'slotkeeper.slots()'::regprocedure", symbol, library)
	}
	s := session(t, shared.conninfo(""), as("postgres", "newer"))
	rename("slotkeeper_later", library)
	faulty(t, s, ExtensionUnavailable, []string{at(), "slotkeeper_later"}, []string{"install", "package"})
	rename("slotkeeper_slots", "$libdir/slotkeeper_gone")
	faulty(t, s, ExtensionUnavailable, []string{at(), "slotkeeper_gone"}, []string{"install", "package"})
	rename("slotkeeper_slots", library)
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read with the right library gave %v", err)
	}
}

func TestAnswerOutsideTheContract(t *testing.T) {
	there := database(t, "strange", true)
	const missing = `CREATE OR REPLACE FUNCTION slotkeeper.raise_fence(fence slotkeeper.fence) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'`
	exec1(t, there, missing)
	_, err := session(t, shared.conninfo(""), as("postgres", "strange")).RaiseFence(patient(t), cluster.Fence{})
	if got := Classify(err); got != ExtensionUnavailable {
		t.Errorf("NULL for an answer is %q (%v), want %q", got, err, ExtensionUnavailable)
	}
}

func TestScriptOfAnotherVersion(t *testing.T) {
	there := database(t, "older", true)
	version := value[string](t, there, "SELECT extversion FROM pg_extension WHERE extname = 'slotkeeper'")
	s := session(t, shared.conninfo(""), as("postgres", "older"))
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatal(err)
	}
	exec1(t, there, "UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'slotkeeper'")
	faulty(t, s, ExtensionUnavailable, []string{"0.9", `"older"`}, []string{"ALTER EXTENSION slotkeeper UPDATE"})
	exec1(t, there, "UPDATE pg_extension SET extversion = $1 WHERE extname = 'slotkeeper'", version)
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read after the update gave %v", err)
	}
}

func TestRoleWithoutPrivileges(t *testing.T) {
	admin := shared.admin(t, "postgres")
	role(t, admin, "Limited One", "")
	s := session(t, shared.conninfo(""), as("Limited One", "postgres"))
	faulty(t, s, NoPrivilege,
		[]string{at(), `"Limited One"`, `"postgres"`, "REPLICATION", "pg_monitor", "USAGE on schema slotkeeper", "EXECUTE on "},
		append(Grants("Limited One"), "primary", `"postgres"`))
	grants := Grants("Limited One")
	for i, sql := range grants {
		if _, err := s.Read(patient(t)); err == nil {
			t.Fatalf("Read works after %d of %d grants: the last are not needed", i, len(grants))
		}
		exec1(t, admin, sql)
	}
	if _, err := s.Read(patient(t)); err != nil {
		t.Fatalf("Read after all grants gave %v", err)
	}
	exec1(t, admin, `REVOKE EXECUTE ON FUNCTION slotkeeper.slots() FROM "Limited One"`)
	faulty(t, s, NoPrivilege, []string{`"Limited One"`, "slots"}, []string{`GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO "Limited One";`})
}

func TestNoHBAEntry(t *testing.T) {
	faulty(t, session(t, shared.conninfo(""), as("foreigner", "postgres")), NoPrivilege,
		[]string{at(), `"foreigner"`, `"postgres"`}, []string{"pg_hba.conf", at(), `"postgres" "foreigner"`})
	faulty(t, session(t, shared.conninfo(""), as("nobody", "postgres")), NoPrivilege,
		[]string{`"nobody"`}, []string{"CREATE ROLE"})
}

func TestNoSuchDatabase(t *testing.T) {
	faulty(t, session(t, shared.conninfo(""), as("postgres", "missing")), WrongEndpoint,
		[]string{at(), `"missing"`}, []string{"postgres.dbname"})
}

func TestNobodyListens(t *testing.T) {
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, "host=127.0.0.1 port="+strconv.Itoa(port), superuser)
	faulty(t, s, Unreachable, []string{"127.0.0.1:" + strconv.Itoa(port), "refused"}, []string{"runs and listens"})
}

// sslmode=prefer tries with TLS and without: the same refusal is told once.
func TestARefusalIsToldOnce(t *testing.T) {
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, "sslmode=prefer host=127.0.0.1 port="+strconv.Itoa(port), superuser)
	if _, err := s.Read(t.Context()); err == nil || strings.Count(err.Error(), "refused") != 1 {
		t.Errorf("got %v", err)
	}
}

func TestPasswordIsNeverShown(t *testing.T) {
	const secret = "s3cret:%/@?"
	dir := t.TempDir()
	passfile := filepath.Join(dir, "pass")
	line := "*:*:*:*:" + strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(secret) + "\n"
	if err := os.WriteFile(passfile, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	o := as("password_role", "postgres")
	o.Passfile = passfile
	member := cluster.Member{Name: "a", Conninfo: shared.conninfo("")}
	s, err := New(member, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	_, err = s.Read(patient(t))
	if Classify(err) != NoPrivilege {
		t.Fatalf("Read with a wrong password gave %v", err)
	}
	message, hint := Explain(err, "a")
	if !strings.Contains(hint, "passfile") || !strings.Contains(message, "password_role") {
		t.Errorf("Explain gave %q, %q", message, hint)
	}
	silent(t, secret, message, hint, err.Error(), fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", s))

	exec1(t, shared.admin(t, "postgres"), "GRANT pg_monitor TO password_role")
	for _, sql := range Grants("password_role") {
		exec1(t, shared.admin(t, "postgres"), sql)
	}
	if err := os.WriteFile(passfile, []byte(strings.Replace(line, `s3cret\:%/@?`, `right\:%/x`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(patient(t)); err != nil {
		t.Errorf("Read with the password changed in the passfile gave %v", err)
	}
}

func TestBadConninfoIsNotShown(t *testing.T) {
	const secret = "hunter2"
	for _, conninfo := range []string{
		"host=x port=99999 password=" + secret,
		"host=x password='" + secret,
		"host=x password = '" + secret + "' port=none",
		"postgres://u:" + secret + "@h:none/db",
		"postgres://u:a:" + secret + "@h:1:2/db?sslmode=what",
		"postgres://u:p/" + secret + "@h:x/db",
		"host=x sslpassword=" + secret + " sslmode=what",
	} {
		_, err := New(cluster.Member{Name: "a", Conninfo: conninfo}, Options{})
		if err == nil {
			t.Errorf("%s is accepted", conninfo)
			continue
		}
		silent(t, secret, err.Error(), fmt.Sprintf("%+v", err))
	}
	_, err := New(cluster.Member{Name: "a", Conninfo: "host=x port=99999"}, Options{})
	if err == nil || !strings.Contains(err.Error(), "99999") || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("New gave %v, want the node and what is wrong", err)
	}
}

func silent(t *testing.T, secret string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("a password is shown: %s", text)
		}
	}
}

func TestNotAPostgreSQLServer(t *testing.T) {
	port := serve(t, func(c net.Conn) {
		defer c.Close()
		c.Read(make([]byte, 1))
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		io.Copy(io.Discard, c)
	})
	s := session(t, "host=127.0.0.1 sslmode=disable port="+strconv.Itoa(port), superuser)
	faulty(t, s, WrongEndpoint, []string{"protocol"}, []string{"host and port"})
}

func TestPooler(t *testing.T) {
	m := &middle{pid: 4711}
	s := session(t, m.serve(t), superuser)
	faulty(t, s, WrongEndpoint, []string{"pooler"}, []string{"not a pooler"})
}
