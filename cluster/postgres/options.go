package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Options are what all sessions have in common. A member's conninfo goes
// before them: each is used only where the conninfo does not have it. None
// holds a password; passwords come from a passfile or the environment.
type Options struct {
	User     string
	DBName   string // the database that has the extension
	Passfile string // "" for libpq's default
	SSLMode  string // "" for libpq's default

	// ConnectTimeout bounds one attempt at one host, name look-up and
	// authentication included. A shorter connect_timeout of the conninfo
	// stands. 3 s where it is not positive.
	ConnectTimeout time.Duration
	// QueryTimeout bounds one round trip. 2 s where it is not positive.
	QueryTimeout time.Duration
}

const (
	defaultConnectTimeout = 3 * time.Second
	defaultQueryTimeout   = 2 * time.Second

	// A message longer than this does not come from a PostgreSQL server that
	// we asked something: without a limit the first bytes of another
	// protocol's answer would make us wait for a gigabyte.
	maxMessage = 256 << 20
)

func (o Options) withDefaults() Options {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = defaultConnectTimeout
	}
	if o.QueryTimeout <= 0 {
		o.QueryTimeout = defaultQueryTimeout
	}
	return o
}

// config gives pgx's configuration for a member. It is made anew for each
// connection, so that a changed passfile or service file counts at once.
func (o Options) config(m cluster.Member) (*pgx.ConnConfig, error) {
	if strings.TrimSpace(m.Conninfo) == "" {
		// libpq would go to whatever the environment or the local socket says.
		return nil, fmt.Errorf("node %q has no conninfo: name at least its host and port", m.Name)
	}
	if o.Passfile != "" {
		f, err := os.Open(o.Passfile)
		if err != nil {
			return nil, fmt.Errorf("reading the passfile for node %q: %w", m.Name, err)
		}
		f.Close()
	}
	c, err := pgx.ParseConfig(combine(m.Conninfo, o))
	if err != nil {
		return nil, fmt.Errorf("parsing the conninfo of node %q: %s", m.Name, maskParseError(m.Conninfo, err))
	}
	if c.Database == "" {
		c.Database = o.DBName
	}
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > o.ConnectTimeout {
		c.ConnectTimeout = o.ConnectTimeout
	}
	c.MaxProtocolMessageBodyLen = maxMessage
	c.LookupFunc = boundedLookup(c.ConnectTimeout)
	for name, value := range o.settings() {
		c.RuntimeParams[name] = value
	}
	return c, nil
}

// boundedLookup is there because pgconn looks names up before the limit of the
// attempt begins.
func boundedLookup(limit time.Duration) pgconn.LookupFunc {
	return func(ctx context.Context, host string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return net.DefaultResolver.LookupHost(ctx, host)
	}
}

// settings are sent in the startup packet. There they go before whatever ALTER
// ROLE, ALTER DATABASE or PGOPTIONS say (guc.c: PGC_S_CLIENT; the packet's own
// parameters are set after its options).
func (o Options) settings() map[string]string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	return map[string]string{
		"application_name": "slotkeeper",
		// The client gives up first and sends a cancel. This is for when the
		// cancel does not arrive.
		"statement_timeout":                   ms(30 * o.QueryTimeout),
		"lock_timeout":                        ms(o.QueryTimeout),
		"idle_in_transaction_session_timeout": ms(30 * o.QueryTimeout),
		"default_transaction_read_only":       "off",
		"default_transaction_isolation":       "read committed",
		"default_transaction_deferrable":      "off",
		"search_path":                         "pg_catalog",
		// No call waits for a synchronous standby: that would tie a slot's
		// safety to the standby that is away.
		"synchronous_commit":              "local",
		"row_security":                    "off",
		"client_encoding":                 "UTF8",
		"datestyle":                       "ISO",
		"timezone":                        "UTC",
		"bytea_output":                    "hex",
		"jit":                             "off",
		"max_parallel_workers_per_gather": "0",
		// The server's side of a connection whose client vanished.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
	}
}

// combine puts the options before the conninfo, where the conninfo wins.
func combine(conninfo string, o Options) string {
	if isURL(conninfo) {
		return combineURL(conninfo, o)
	}
	given := []struct{ key, value string }{
		{"user", o.User}, {"dbname", o.DBName}, {"passfile", o.Passfile}, {"sslmode", o.SSLMode},
	}
	var b strings.Builder
	for _, g := range given {
		if g.value != "" && !hasService(conninfo) {
			fmt.Fprintf(&b, "%s=%s ", g.key, quoteValue(g.value))
		}
	}
	return b.String() + conninfo
}

func quoteValue(v string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
}

// hasService: what a service file says counts as said by the conninfo, so the
// options must not override it.
func hasService(conninfo string) bool {
	for _, word := range strings.Fields(conninfo) {
		if key, _, _ := strings.Cut(word, "="); key == "service" {
			return true
		}
	}
	return false
}

// maskParseError leaves the parser's text out where it could quote a password.
func maskParseError(conninfo string, err error) string {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return "it is not valid"
	}
	if strings.Contains(strings.ToLower(conninfo), "pass") || strings.Contains(conninfo, "@") {
		return "it is not a valid connection string (not shown, it may hold a password; keep passwords in a passfile)"
	}
	text := strings.TrimPrefix(err.Error(), "cannot parse ")
	return strings.ReplaceAll(text, "\n", " ")
}
