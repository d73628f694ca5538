//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// life is a writer and a consumer that go on by themselves, whoever is primary:
// the consumer notes what it has received, and confirms it then.
type life struct {
	nodes []*lab.Node
	end   context.CancelFunc
	work  sync.WaitGroup

	mu       sync.Mutex
	received map[string]bool
	confirms int // how often it has confirmed something
}

// live begins to write into table t and to consume slot cdc.
func (s *scene) live() *life {
	s.T.Helper()
	ctx, end := context.WithCancel(s.Ctx)
	l := &life{nodes: s.p.Nodes(), end: end, received: map[string]bool{}}
	l.work.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			l.once(ctx, func(conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, "INSERT INTO t VALUES ($1)", i)
				return err
			})
		}
	})
	l.work.Go(func() {
		for ctx.Err() == nil {
			l.once(ctx, func(conn *pgx.Conn) error { return l.consume(ctx, conn) })
		}
	})
	s.T.Cleanup(l.stop)
	return l
}

func (l *life) stop() {
	l.end()
	l.work.Wait()
}

// once does something on the primary, whichever that is.
func (l *life) once(ctx context.Context, do func(*pgx.Conn) error) {
	for _, n := range l.nodes {
		conn, err := n.Connect(ctx, "", "")
		if err != nil {
			continue
		}
		var recovering bool
		err = conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&recovering)
		if err == nil && !recovering {
			_ = do(conn) // it is done again
		}
		_ = conn.Close(context.WithoutCancel(ctx))
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// consume takes what the slot has and confirms it afterwards, as a consumer does
// that loses nothing by itself.
func (l *life) consume(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT lsn::text, data FROM pg_logical_slot_peek_changes('cdc', NULL, NULL)")
	if err != nil {
		return err
	}
	type change struct{ LSN, Data string }
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	if err != nil || len(changes) == 0 {
		return err
	}
	l.mu.Lock()
	for _, c := range changes {
		l.received[c.Data] = true
	}
	l.mu.Unlock()
	_, err = conn.Exec(ctx, "SELECT pg_replication_slot_advance('cdc', $1::text::pg_lsn)", changes[len(changes)-1].LSN)
	if err == nil {
		l.mu.Lock()
		l.confirms++
		l.mu.Unlock()
	}
	return err
}

func (l *life) confirmed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirms
}

// goesOn waits until the consumer has confirmed twice more.
func (s *scene) goesOn(l *life) {
	s.T.Helper()
	from := l.confirmed()
	s.until("the consumer to go on", func() (bool, string) {
		return l.confirmed() >= from+2, fmt.Sprintf("it has confirmed %d times", l.confirmed())
	})
}

// account ends the writer and wants each row that the primary has to have come.
func (s *scene) account(l *life) {
	s.T.Helper()
	l.stop()
	leader := s.leader().Node()
	conn, err := leader.Connect(s.Ctx, "", "")
	s.OK(err)
	defer func() { _ = conn.Close(s.Ctx) }()
	for range 2 { // what is left: a transaction at a time could be more than one answer
		s.OK(l.consume(s.Ctx, conn))
	}
	ids := s.Rows(leader, "SELECT id::text FROM t")
	lost := 0
	for _, id := range ids {
		if !l.received[fmt.Sprintf("table public.t: INSERT: id[integer]:%s", id)] {
			lost++
		}
	}
	if lost > 0 || len(ids) == 0 {
		s.T.Errorf("%d of %d rows never came", lost, len(ids))
	}
	s.T.Logf("%d rows, %d lost", len(ids), lost)
}
