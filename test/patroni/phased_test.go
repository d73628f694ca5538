//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// phasedReader consumes a two-phase slot of test_decoding by SQL: it looks first,
// notes, and confirms then.
type phasedReader struct {
	slot string
	end  context.CancelFunc
	work sync.WaitGroup

	mu        sync.Mutex
	rows      map[string]bool // "writer.transaction.part", of transactions that came whole
	prepared  map[string]bool // by name
	committed map[string]bool
	calls     int
}

func (s *scene) readPhased(slot string) *phasedReader {
	s.T.Helper()
	ctx, end := context.WithCancel(s.Ctx)
	r := &phasedReader{slot: slot, end: end, rows: map[string]bool{}, prepared: map[string]bool{}, committed: map[string]bool{}}
	r.work.Go(func() {
		for ctx.Err() == nil {
			if conn, err := connectLeader(ctx, s.p); err == nil {
				_ = r.consume(ctx, conn) // it is done again; what does not come at all is counted at the end
				_ = conn.Close(context.WithoutCancel(ctx))
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	s.T.Cleanup(r.stop)
	return r
}

func (r *phasedReader) stop() {
	r.end()
	r.work.Wait()
}

// take reads what there is now.
func (r *phasedReader) take(ctx context.Context, leader *lab.Node) error {
	conn, err := leader.Connect(ctx, "", "")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return r.consume(ctx, conn)
}

var (
	phasedRow    = regexp.MustCompile(`INSERT: writer\[integer\]:(\d+) tx\[bigint\]:(\d+) part\[integer\]:(\d+) `)
	phasedEnd    = regexp.MustCompile(`^(PREPARE TRANSACTION|COMMIT PREPARED|ROLLBACK PREPARED) '([^']+)'`)
	phasedCommit = regexp.MustCompile(`^COMMIT \d+`)
)

func (r *phasedReader) consume(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT lsn::text, data FROM pg_logical_slot_peek_changes($1, NULL, NULL)", r.slot)
	if err != nil {
		return err
	}
	var at, data string
	var open []string // rows of the transaction that is coming
	_, err = pgx.ForEachRow(rows, []any{&at, &data}, func() error {
		switch {
		case phasedRow.MatchString(data):
			m := phasedRow.FindStringSubmatch(data)
			open = append(open, m[1]+"."+m[2]+"."+m[3])
		case phasedCommit.MatchString(data):
			r.note(open, "", "")
			open = nil
		case phasedEnd.MatchString(data):
			m := phasedEnd.FindStringSubmatch(data)
			r.note(open, m[1], m[2])
			open = nil
		}
		return nil
	})
	if err != nil || at == "" {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_replication_slot_advance($1, $2::text::pg_lsn)", r.slot, at)
	return err
}

func (r *phasedReader) note(rows []string, what, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	for _, row := range rows {
		r.rows[row] = true
	}
	switch what {
	case "PREPARE TRANSACTION":
		r.prepared[name] = true
	case "COMMIT PREPARED":
		r.committed[name] = true
	}
}

// account wants all rows that the primary holds, and of what was prepared both
// phases.
func (r *phasedReader) account(s *scene, leader *lab.Node, load *lab.Load) {
	s.T.Helper()
	names := s.Rows(leader, "SELECT concat_ws('.', writer, tx, part) FROM lab_rows")
	lost := 0
	for _, name := range names {
		if !r.rows[name] {
			lost++
		}
	}
	both := 0
	for _, writer := range load.Prepared() {
		for _, tx := range s.Rows(leader, fmt.Sprintf("SELECT DISTINCT tx::text FROM lab_rows WHERE writer = %d", writer)) {
			name := fmt.Sprintf("lab_%d_%s", writer, tx)
			both++
			if !r.prepared[name] || !r.committed[name] {
				s.T.Errorf("slot %s: of %s came PREPARE %v, COMMIT PREPARED %v", r.slot, name, r.prepared[name], r.committed[name])
			}
		}
	}
	s.T.Logf("slot %s: %d rows, %d lost; %d prepared and committed", r.slot, len(names), lost, both)
	if lost > 0 || len(names) == 0 || both == 0 {
		s.T.Errorf("slot %s lost %d of %d rows", r.slot, lost, len(names))
	}
}
