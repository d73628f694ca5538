package fuzz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// tally counts calls, SQLSTATEs and codes, of several workers together.
type tally struct {
	mu    sync.Mutex
	calls map[string]int
	codes map[string]int
	odd   []string
}

func newTally() *tally { return &tally{calls: map[string]int{}, codes: map[string]int{}} }

func (y *tally) note(function string, codes []string, sql string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.calls[function]++
	for _, code := range codes {
		y.codes[code]++
		if state, is := strings.CutPrefix(code, "error "); is && !harmless(state) && len(y.odd) < 20 {
			y.odd = append(y.odd, state+": "+sql)
		}
	}
}

// wonder keeps a text that is no answer to any argument.
func (y *tally) wonder(text string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.odd) < 20 {
		y.odd = append(y.odd, text)
	}
}

func (y *tally) total() int {
	sum := 0
	for _, n := range y.calls {
		sum += n
	}
	return sum
}

// report prints the counts and tells of errors that no argument should cause.
func (y *tally) report(t *testing.T) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	t.Logf("%d calls: %s", y.total(), counts(y.calls))
	t.Logf("codes and SQLSTATEs: %s", counts(y.codes))
	for _, sql := range y.odd {
		t.Errorf("a call ended in what no argument should cause: %.2000s", sql)
	}
}

func counts(m map[string]int) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		texts = append(texts, fmt.Sprintf("%s %d", key, m[key]))
	}
	return strings.Join(texts, ", ")
}

// worker calls the extension on one node with the controller's role.
type worker struct {
	node, primary *lab.Node
	rand          *rand.Rand
	tally         *tally
	conn, other   *pgx.Conn
	resumes       []string
	tokens        []string
}

func (w *worker) connect(ctx context.Context) (err error) {
	if w.conn, err = w.node.Connect(ctx, "", lab.RoleName); err != nil {
		return err
	}
	w.other, err = w.primary.Connect(ctx, "", lab.RoleName)
	return err
}

func (w *worker) close(ctx context.Context) {
	for _, conn := range []*pgx.Conn{w.conn, w.other} {
		if conn != nil {
			_ = conn.Close(ctx) // its server may be dead
		}
	}
}

// do runs one text and gives its codes, "error SQLSTATE" for one that failed.
func (w *worker) do(ctx context.Context, function, sql string) ([]string, error) {
	results, err := w.exec(ctx, function, sql)
	var codes []string
	for _, result := range results {
		for _, row := range result.Rows {
			if result.CommandTag.String() == "CALL" {
				codes = append(codes, "token")
				w.tokens = append(w.tokens[max(0, len(w.tokens)-5):], string(row[0]))
			}
			if len(row) != 3 {
				continue // of a call in another form
			}
			codes = append(codes, string(row[0]))
			w.remember(string(row[1]))
			if string(row[0]) == "save_failed" {
				w.tally.wonder("save_failed, with room on the disk: " + string(row[2]) + ": " + sql)
			}
		}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		codes = append(codes, "error "+pg.Code)
	} else if err != nil {
		return codes, fmt.Errorf("after %.2000s: %w", sql, err)
	}
	w.tally.note(function, codes, sql)
	if w.conn.PgConn().TxStatus() != 'I' {
		_, err = w.conn.Exec(ctx, "ROLLBACK")
		return codes, err
	}
	return codes, nil
}

func (w *worker) remember(resume string) {
	if resume != "" {
		w.resumes = append(w.resumes[max(0, len(w.resumes)-20):], resume)
	}
}

// run makes so many calls; now and then it does what the controller would, so
// that the others meet holds and mirrors.
func (w *worker) run(ctx context.Context, n int) error {
	var v *view
	for i := range n {
		if i%50 == 0 {
			var err error
			if v, err = look(ctx, w.rand, w.conn, w.other); err != nil {
				return err
			}
			if err := w.mend(ctx, v); err != nil {
				return err
			}
		}
		v.resumes, v.tokens = w.resumes, w.tokens
		c := v.one()
		if w.rand.IntN(4) > 0 {
			c = c.broken(&v.values)
		}
		if _, err := w.do(ctx, c.function, v.wrapped(c)); err != nil {
			return err
		}
		// Else a fence raised or removed would keep most calls from going deep.
		if strings.HasSuffix(c.function, "_fence") && w.rand.IntN(8) > 0 {
			if err := w.fence(ctx, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// fence gives the node the fence that valid calls show.
func (w *worker) fence(ctx context.Context, v *view) error {
	const remove = `SELECT slotkeeper.remove_fence(n.fence), NULL, NULL FROM slotkeeper.node() n WHERE n.fence IS NOT NULL`
	for _, sql := range []string{remove, v.raise().sql()} {
		if _, err := w.do(ctx, "raise_fence", sql); err != nil {
			return err
		}
	}
	return nil
}

// mend takes away what hostile calls have left by right of their fence, and makes
// hold and mirrors.
func (w *worker) mend(ctx context.Context, v *view) error {
	if err := w.fence(ctx, v); err != nil {
		return err
	}
	names := []string{}
	for _, s := range v.local {
		if s.marker != "" && s.marker != "original" && (s.generation > 1000 || !strings.HasPrefix(s.name, "cdc") && s.marker == "mirror") {
			names = append(names, s.name)
		}
	}
	if v.generation > 1000 {
		v.generation = 1
	}
	for _, c := range []call{v.drop(names...), v.mark(v.originals), v.hold(v.originals), v.apply(v.originals)} {
		if _, err := w.do(ctx, c.function, c.sql()); err != nil {
			return err
		}
	}
	return nil
}
