package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// fault wraps err with what it means for this node.
func (s *Session) fault(err error) error {
	f := &Fault{Node: s.member.Name, err: err}
	if config, cerr := s.opts.config(s.member); cerr == nil {
		f.Host, f.Role, f.Database = hosts(config), config.User, config.Database
	}
	f.explain()
	return f
}

// hosts names where a configuration connects to, each host once.
func hosts(c *pgx.ConnConfig) string {
	var all []string
	add := func(host string, port uint16) {
		at := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if strings.HasPrefix(host, "/") {
			at = fmt.Sprintf("%s port %d", host, port)
		}
		if len(all) == 0 || all[len(all)-1] != at {
			all = append(all, at)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port) // sslmode=prefer lists each host twice in a row
	}
	return strings.Join(all, ", ")
}

func (f *Fault) explain() {
	var privilege *privilegeError
	var endpoint *endpointError
	var stale *staleError
	var long *pgproto3.ExceededMaxBodyLenErr
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	f.reason = Unreachable
	switch {
	case errors.As(f.err, &privilege):
		f.set(NoPrivilege, fmt.Sprintf("%s at %s: %s", f.who(), f.Host, privilege), f.grantHint())
	case errors.As(f.err, &endpoint):
		f.set(WrongEndpoint, fmt.Sprintf("%s is not a PostgreSQL server's own port: %s", f.Host, endpoint),
			"let the conninfo name the server itself, host and port, not a pooler or proxy")
	case errors.As(f.err, &stale):
		f.set(ExtensionUnavailable, fmt.Sprintf("database %q at %s: %s", f.Database, f.Host, stale), stale.hint)
	case errors.As(f.err, &long):
		f.set(WrongEndpoint, fmt.Sprintf("%s does not speak PostgreSQL's protocol: %s", f.Host, long),
			"let the conninfo name the host and port of the server")
	case errors.As(f.err, &pg):
		f.explainServer(pg)
	case errors.As(f.err, &connect):
		f.set(Unreachable, fmt.Sprintf("connecting to %s, %s: %s", f.Host, f.who(), connectText(connect)), f.connectHint())
	case errors.Is(f.err, context.DeadlineExceeded) || pgconn.Timeout(f.err):
		f.set(Unreachable, fmt.Sprintf("%s did not answer in time: %s", f.Host, oneLine(f.err.Error())),
			"see whether the server, its disk or the network hangs; a longer postgres.query_timeout helps only where it is merely slow")
	case f.Host == "" || errors.Is(f.err, ErrClosed):
		f.set(Unreachable, oneLine(f.err.Error()), "")
	case errors.Is(f.err, context.Canceled) || broken(f.err):
		f.set(Unreachable, fmt.Sprintf("the connection to %s ended: %s", f.Host, oneLine(f.err.Error())), "see the server's log")
	default:
		// Whole answers came, but not what the contract says.
		f.set(ExtensionUnavailable, fmt.Sprintf("database %q at %s: %s", f.Database, f.Host, oneLine(f.err.Error())),
			"install an extension and a slotkeeper of one release")
	}
}

func (f *Fault) set(reason, message, hint string) {
	f.reason, f.message, f.hint = reason, message, hint
}

func (f *Fault) who() string { return fmt.Sprintf("role %q, database %q", f.Role, f.Database) }

func (f *Fault) grantHint() string {
	return fmt.Sprintf("on the primary, in database %q, as superuser: %s", f.Database, strings.Join(Grants(f.Role), " "))
}

func (f *Fault) connectHint() string {
	return fmt.Sprintf("see whether the server at %s runs and listens there, and whether a firewall drops the packets", f.Host)
}

// connectText is the text of a failed attempt without what fault says itself.
// sslmode=prefer tries each address twice, and both fail alike: once is enough.
func connectText(e *pgconn.ConnectError) string {
	var lines []string
	for _, line := range strings.Split(errors.Unwrap(e).Error(), "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return oneLine(strings.Join(lines, "\n"))
}

// explainServer is for what the server itself answered. Only SQLSTATE and
// routine are looked at: messages come in the server's language.
func (f *Fault) explainServer(pg *pgconn.PgError) {
	said := fmt.Sprintf("%s at %s: %s: %s (SQLSTATE %s)", f.who(), f.Host, pg.Severity, pg.Message, pg.Code)
	if pg.Detail != "" {
		said += ": " + oneLine(pg.Detail)
	}
	if fromLoader(pg) {
		f.set(ExtensionUnavailable, said, fmt.Sprintf(
			"install the slotkeeper extension package for this server's major on %s; no restart is needed", f.Host))
		return
	}
	switch pg.Code {
	case codeBadPassword:
		f.set(NoPrivilege, said, fmt.Sprintf(
			"give the password of role %q for %s in the passfile (PGPASSFILE or postgres.passfile)", f.Role, f.Host))
	case codeBadAuth:
		f.set(NoPrivilege, said, f.authHint())
	case codeNoPrivilege:
		f.set(NoPrivilege, said, f.grantHint())
	case codeNoDatabase:
		f.set(WrongEndpoint, said, fmt.Sprintf(
			"set postgres.dbname, or dbname in the conninfo, to the database that has the extension; there is no %q", f.Database))
	case codeNoSchema, codeNoFunction, codeNoObject, codeNoColumn, codePlanChanged:
		f.set(ExtensionUnavailable, said, f.createHint())
	case codeProtocol:
		f.set(WrongEndpoint, said, "let the conninfo name the server itself: a connection pooler refuses the session settings")
	default:
		f.set(otherReason(pg.Code), said, otherHint(pg))
	}
}

// fromLoader reports whether the server could not load the extension's library
// or find a function in it: the file is missing, of another major, or older than
// the SQL objects.
func fromLoader(pg *pgconn.PgError) bool { return pg.File == "dfmgr.c" }

func (f *Fault) authHint() string {
	return fmt.Sprintf("let pg_hba.conf of %s admit this controller's address to database %q as role %q, for example "+
		"\"host %s %s ADDRESS/32 scram-sha-256\", and reload; the role must exist and have LOGIN (CREATE ROLE %s LOGIN REPLICATION;)",
		f.Host, f.Database, f.Role, hbaWord(f.Database), hbaWord(f.Role), quoteIdent(f.Role))
}

func (f *Fault) createHint() string {
	return fmt.Sprintf("on the primary, in database %q: CREATE EXTENSION slotkeeper; (or ALTER EXTENSION slotkeeper UPDATE; where it is there), then: %s",
		f.Database, strings.Join(Grants(f.Role), " "))
}

// otherReason: a server that is starting, full or ending tells nothing of the
// node; any other error comes out of the extension's functions.
func otherReason(code string) string {
	switch code[:min(2, len(code))] {
	case "08", "25", "40", "53", "55", "57":
		return Unreachable
	}
	return ExtensionUnavailable
}

func otherHint(pg *pgconn.PgError) string {
	switch pg.Code {
	case codeStarting:
		return "wait until the server has started; a standby needs hot_standby = on"
	case codeTooMany:
		return "raise max_connections, or keep superuser_reserved_connections for slotkeeper: it needs two"
	}
	return pg.Hint
}
