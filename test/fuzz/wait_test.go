package fuzz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const waits = "wait_for_change"

// wait gives a valid call of wait_for_change: it begins, or waits for what a
// token does not say yet, or for a position too.
func (v *view) wait() call {
	token := "NULL"
	if known := v.seen(v.tokens, ""); known != "" {
		token = lit(pick(v.rand, known, known, known+"@"+v.seen(v.lsns, "0/1")))
	}
	return call{waits, []arg{plain(aToken, token), plain(aTimeout, lit(pick(v.rand, "0", "1 ms", "5 ms", "1 s", "1 day")))}}
}

// token gives what a wait has returned, with some of it changed, or rubbish.
func (v *values) token() string {
	token := v.seen(v.tokens, "1:0000000000000000")
	switch v.rand.IntN(5) {
	case 0:
		return pick(v.rand, "", "1:", "2"+token[1:], token+" ", token+"@", token+"@0/0", token+"@"+token, "1:000000000000000G", "\u0080")
	case 1:
		return token[:v.rand.IntN(len(token))]
	case 2:
		return token + "@" + v.lsn()
	case 3:
		return token[:2] + fmt.Sprintf("%016x", v.rand.Uint64())
	}
	return token
}

func (v *values) timeout() string {
	return pick(v.rand, "-1 ms", "-2147483648 days", "1 month", "1 day", "1 day 1 microsecond", "1 microsecond", "2147483647 days 2147483647 hours",
		"178000000 years", "infinity", "-infinity", "0", "", "soon")
}

// wrappedWait puts it where callers put a procedure, most of which are refused:
// there is a snapshot.
func (v *view) wrappedWait(c call) string {
	sql := fmt.Sprintf("CALL slotkeeper.%s(%s)", c.function, list(c.args))
	inside := fmt.Sprintf("CALL slotkeeper.%s(t, %s)", c.function, c.args[1])
	block := func(body string) string {
		return "DO $fuzz$ DECLARE t text := " + c.args[0].String() + "; i integer; BEGIN " + body + " END $fuzz$"
	}
	switch v.rand.IntN(20) {
	case 0:
		return "BEGIN; " + sql + "; COMMIT"
	case 1:
		return sql + "; " + sql
	case 2:
		return "SELECT slotkeeper." + c.function + "(" + list(c.args) + ")"
	case 3:
		return block(inside + "; PERFORM count(*) FROM pg_class; COMMIT; " + inside + "; PERFORM count(*) FROM pg_class;")
	case 4:
		return block("BEGIN " + inside + "; EXCEPTION WHEN division_by_zero THEN NULL; END;")
	case 5:
		return block("FOR i IN SELECT 1 FROM pg_class LOOP " + inside + "; END LOOP;")
	case 6:
		return "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; " + sql + "; COMMIT"
	}
	return sql
}

// exec runs one text. What waits is ended by a cancel, as its callers end it, and
// no cancel can hit what comes next.
func (w *worker) exec(ctx context.Context, function, sql string) ([]*pgconn.Result, error) {
	if function != waits {
		return w.conn.PgConn().Exec(ctx, sql).ReadAll()
	}
	cancelled := make(chan error, 1)
	timer := time.AfterFunc(time.Duration(w.rand.IntN(20_000))*time.Microsecond, func() { cancelled <- w.conn.PgConn().CancelRequest(ctx) })
	results, err := w.conn.PgConn().Exec(ctx, sql).ReadAll()
	if timer.Stop() {
		return results, err
	}
	return results, errors.Join(err, <-cancelled)
}
