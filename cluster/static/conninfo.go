package static

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// secrets are the keywords whose value is a password.
var secrets = []string{"password", "sslpassword"}

// keywords are those of libpq's that say where a server is and how to reach it.
// Left out are the passwords, and options and replication, which the sessions
// set themselves.
var keywords = []string{
	"service", "host", "hostaddr", "port", "dbname", "user", "passfile", "require_auth", "channel_binding",
	"connect_timeout", "client_encoding", "application_name", "fallback_application_name",
	"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
	"ssl", "sslmode", "sslnegotiation", "sslcompression", "sslcert", "sslkey", "sslcertmode", "sslrootcert",
	"sslcrl", "sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version",
	"min_protocol_version", "max_protocol_version", "requirepeer",
	"krbsrvname", "krbspn", "gsslib", "gssencmode", "gssdelegation", "target_session_attrs", "load_balance_hosts",
}

// checkConninfo refuses what cannot be read and what holds a password. It
// quotes nothing of a string that may hold one.
func checkConninfo(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New(`conninfo is empty: write such as "host=db1 port=5432"`)
	}
	// pgconn takes another URL for a keyword, up to its first "=".
	if i := strings.Index(s, "://"); i > 0 && !strings.Contains(s[:i], "=") &&
		s[:i] != "postgresql" && s[:i] != "postgres" {
		return errors.New("conninfo is a URL of another kind: want it to begin with postgresql://")
	}
	withSecrets := append(append([]string{}, keywords...), secrets...)
	if err := parse(s, withSecrets); err != nil {
		return err
	}
	if err := parse(s, keywords); err != nil {
		return errors.New("conninfo holds a password: take it out and keep it in a passfile (postgres.passfile, PGPASSFILE or ~/.pgpass)")
	}
	return nil
}

func parse(s string, allowed []string) error {
	_, err := pgconn.ParseConfigWithOptions(s, pgconn.ParseConfigOptions{ConnStringAllowedKeys: allowed})
	if err == nil {
		return nil
	}
	lower := strings.ToLower(s)
	if strings.Contains(lower, "pass") || strings.Contains(s, "@") {
		return errors.New("conninfo cannot be read (not shown, it may hold a password; passwords belong in a passfile)")
	}
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	_, why, ok := strings.Cut(text, "`: ")
	if !ok {
		why = text
	}
	if unknown, ok := strings.CutSuffix(why, " is not in ConnStringAllowedKeys"); ok {
		// Its value is not repeated: a password may stand behind any name.
		return fmt.Errorf("conninfo cannot be read: %s is not known here", strings.Replace(unknown, "connection string key", "keyword", 1))
	}
	if !shown(s) {
		return fmt.Errorf("conninfo cannot be read (not shown, it may hold a password; passwords belong in a passfile): %s; write such as \"host=db1 port=5432\"", why)
	}
	return fmt.Errorf("conninfo %q cannot be read: %s", s, why)
}

// shown reports whether each word of a conninfo is a keyword, with its value or
// without. A word alone may be a password, whose name was forgotten.
func shown(s string) bool {
	if strings.Contains(s, "://") {
		return true
	}
	for _, word := range strings.Fields(s) {
		if name, _, _ := strings.Cut(word, "="); !slices.Contains(keywords, name) {
			return false
		}
	}
	return true
}
