package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The verdict reasons that an error of this package stands for.
const (
	Unreachable          = "unreachable"
	NoPrivilege          = "no_privilege"
	ExtensionUnavailable = "extension_unavailable"
	WrongEndpoint        = "wrong_endpoint"
)

// SQLSTATEs that decide something here.
const (
	codePlanChanged       = "0A000" // cached plan must not change result type: the extension was altered under us
	codeIdleInTransaction = "25P03"
	codeAdminShutdown     = "57P01"
	codeIdleSession       = "57P05"
	codeNoDatabase        = "3D000"
	codeNoSchema          = "3F000"
	codeNoFunction        = "42883"
	codeNoObject          = "42704"
	codeNoColumn          = "42703"
	codeNoPrivilege       = "42501"
	codeBadAuth           = "28000"
	codeBadPassword       = "28P01"
	codeProtocol          = "08P01"
	codeStarting          = "57P03"
	codeTooMany           = "53300"
	codeLockTimeout       = "55P03"
	codeCanceled          = "57014" // statement_timeout among others
)

// Fault is the error that every method of a Session gives.
type Fault struct {
	Node, Host, Role, Database string

	reason  string
	message string
	hint    string
	err     error
}

// Error is one line without a password.
func (f *Fault) Error() string { return fmt.Sprintf("node %q: %s", f.Node, f.message) }

// Unwrap gives what lies under it.
func (f *Fault) Unwrap() error { return f.err }

// Reason is the verdict reason: Unreachable, NoPrivilege, ExtensionUnavailable
// or WrongEndpoint.
func (f *Fault) Reason() string { return f.reason }

// Hint says what to do.
func (f *Fault) Hint() string { return f.hint }

// Timeout reports whether no answer came in the time that the call had, or none
// but that a lock was waited for so long.
func (f *Fault) Timeout() bool {
	var pg *pgconn.PgError
	if errors.As(f.err, &pg) {
		return pg.Code == codeLockTimeout || pg.Code == codeCanceled
	}
	return errors.Is(f.err, context.DeadlineExceeded) || pgconn.Timeout(f.err)
}

// Classify gives the verdict reason that an error stands for. An error of
// another kind counts as Unreachable: nothing is known of the node.
func Classify(err error) string {
	var f *Fault
	if errors.As(err, &f) {
		return f.reason
	}
	return Unreachable
}

// Explain gives a sentence about node and what to do. Neither holds a password.
func Explain(err error, node string) (message, hint string) {
	var f *Fault
	if errors.As(err, &f) {
		return fmt.Sprintf("node %q: %s", node, f.message), f.hint
	}
	return fmt.Sprintf("node %q: %s", node, oneLine(err.Error())), ""
}

// privilegeError: the role can log in but lacks something.
type privilegeError struct{ lacks []string }

func (e *privilegeError) Error() string { return "the role lacks " + strings.Join(e.lacks, " and ") }

// endpointError: what answers is not a session of a PostgreSQL server.
type endpointError struct{ what string }

func (e *endpointError) Error() string { return e.what }

// staleError: the extension's parts do not fit each other or this program. The
// connection is closed, as a session keeps the library that it once loaded.
type staleError struct {
	what, hint string
	reconnect  bool
}

func (e *staleError) Error() string { return e.what }

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\t' }), "; ")
}
