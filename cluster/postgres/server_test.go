package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// server is one PostgreSQL server for all tests of this package. cluster/lab
// is not for packages below it: only the port is that no other test takes.
type server struct {
	dir  string
	port int
	cmd  *exec.Cmd
	log  bytes.Buffer
}

var shared *server

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if shared, err = startServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.stop()
	before := goleak.IgnoreCurrent()
	if code := m.Run(); code != 0 {
		return code
	}
	if err := goleak.Find(before); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hba has no line for role stranger.
const hba = `
host all password_role 127.0.0.1/32 scram-sha-256
host all stranger 127.0.0.1/32 reject
host all foreigner 127.0.0.2/32 trust
host all +trusted 127.0.0.1/32 trust
host all postgres 127.0.0.1/32 trust
`

func startServer() (s *server, err error) {
	s = &server{}
	if s.dir, err = os.MkdirTemp("", "slotkeeper-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	bin, err := binDir()
	if err != nil {
		return nil, err
	}
	attr, err := s.credential()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr = attr
	initdb.Dir = s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(hba), 0o644); err != nil {
		return nil, err
	}
	if s.port, err = lab.FreePort(); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(s.port), "-k", s.dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "wal_level=logical", "-c", "max_connections=40", "-c", "max_prepared_transactions=2",
		"-c", "shared_buffers=16MB", "-c", "password_encryption=scram-sha-256")
	s.cmd.SysProcAttr, s.cmd.Dir, s.cmd.Stderr = attr, s.dir, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	return s, s.prepare()
}

// binDir is where the server is: named by the environment, as for cluster/lab,
// in Debian's place, or where pg_config says.
func binDir() (string, error) {
	major := cmp.Or(os.Getenv("SLOTKEEPER_MAJOR"), "15")
	if dir := os.Getenv("SLOTKEEPER_PG" + major); dir != "" {
		return dir, nil
	}
	debian := "/usr/lib/postgresql/" + major + "/bin"
	if _, err := os.Stat(filepath.Join(debian, "postgres")); err == nil {
		return debian, nil
	}
	out, err := exec.Command("pg_config", "--bindir").Output()
	if err != nil {
		return "", fmt.Errorf("asking pg_config for the servers' folder: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// credential: postgres refuses root.
func (s *server) credential() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(s.dir, uid, gid)
}

const rolesSQL = `
CREATE EXTENSION slotkeeper;
CREATE ROLE trusted;
CREATE ROLE password_role LOGIN REPLICATION PASSWORD 'right:%/x';
CREATE ROLE stranger LOGIN;
CREATE ROLE foreigner LOGIN;
`

func (s *server) prepare() error {
	var c *pgx.Conn
	err := until(func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var err error
		c, err = pgx.Connect(ctx, s.conninfo("user=postgres dbname=postgres"))
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("starting the server: %w: %s", err, s.log.String())
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(context.Background(), rolesSQL); err != nil {
		return fmt.Errorf("preparing the server: %w", err)
	}
	return nil
}

func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Signal(syscall.SIGQUIT)
		s.cmd.Wait()
	}
	os.RemoveAll(s.dir)
}

func (s *server) conninfo(more string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d sslmode=disable %s", s.port, more)
}

// admin gives a superuser's connection to a database, for the test's own use.
func (s *server) admin(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(s.conninfo("user=postgres"))
	if err != nil {
		t.Fatal(err)
	}
	config.Database = database
	c, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// database makes one that goes with the test, and gives an administrator's
// connection to it; the extension is there if asked for.
func database(t *testing.T, name string, extension bool) *pgx.Conn {
	t.Helper()
	admin := shared.admin(t, "postgres")
	exec1(t, admin, "CREATE DATABASE "+quoteIdent(name)+" TEMPLATE template0")
	finally(t, admin, "DROP DATABASE "+quoteIdent(name)+" WITH (FORCE)")
	there := shared.admin(t, name)
	if extension {
		exec1(t, there, "CREATE EXTENSION slotkeeper")
	}
	return there
}

// role makes one that goes with the test and may come from 127.0.0.1.
func role(t *testing.T, admin *pgx.Conn, name, attributes string) {
	t.Helper()
	exec1(t, admin, "CREATE ROLE "+quoteIdent(name)+" LOGIN "+attributes+" IN ROLE trusted")
	finally(t, admin, "DROP OWNED BY "+quoteIdent(name)+"; DROP ROLE "+quoteIdent(name))
}

// finally runs statements when the test has ended.
func finally(t *testing.T, c *pgx.Conn, sql string) {
	t.Cleanup(func() {
		if _, err := c.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	})
}

func exec1(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func value[T any](t *testing.T, c *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := c.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// session gives a session that ends with the test.
func session(t *testing.T, conninfo string, o Options) *Session {
	t.Helper()
	s, err := New(cluster.Member{Name: "a", Conninfo: conninfo}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// superuser is the options of a session that lacks nothing.
var superuser = Options{User: "postgres", DBName: "postgres", ConnectTimeout: 20 * time.Second, QueryTimeout: 20 * time.Second}

// until polls a condition, half a minute at most.
func until(done func() (bool, error)) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still not so after 30 s: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := until(func() (bool, error) { return done(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
