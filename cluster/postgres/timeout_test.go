package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Who calls must tell a call that got no answer in its time from one that the
// server refused.
func TestTimeout(t *testing.T) {
	o := superuser
	o.QueryTimeout = 500 * time.Millisecond
	s := session(t, shared.conninfo(""), o)
	for sql, want := range map[string]bool{"SELECT pg_sleep(60)": true, "SELECT 1/0": false} {
		err := s.Query(patient(t), "asking", sql, func(pgx.Rows) error { return nil })
		var f *Fault
		if !errors.As(err, &f) || f.Timeout() != want {
			t.Errorf("%s: %v, want one that says %t", sql, err, want)
		}
	}
	for code, want := range map[string]bool{codeLockTimeout: true, codeCanceled: true, codeAdminShutdown: false} {
		f := &Fault{err: fmt.Errorf("applying: %w", &pgconn.PgError{Code: code})}
		if f.Timeout() != want {
			t.Errorf("SQLSTATE %s gives %t", code, !want)
		}
	}
}
