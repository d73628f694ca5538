package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// promise is what the catalogs must keep now: rows that a transaction from at on has
// removed, 0 for nothing. A slot that pins them pinned them all the time before it
// moved on. So whoever promises by it finds that nothing later was removed already.
type promise struct {
	mu          sync.Mutex
	at, removed cluster.XID
}

func later(a, b cluster.XID) cluster.XID {
	if a == 0 || a.Precedes(b) {
		return b
	}
	return a
}

// upTo lets the promise go up to there, if it is not there already.
func (p *promise) upTo(x cluster.XID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at != 0 {
		p.at = later(p.at, x)
	}
}

// is promises all from there on, unless they are gone.
func (p *promise) is(x cluster.XID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.Precedes(p.removed) {
		return fmt.Errorf("rows from %s on are promised, and what is older than %s was removed", x, p.removed)
	}
	p.at = x
	return nil
}

// goes notes that a VACUUM has removed what is older.
func (p *promise) goes(table string, x cluster.XID) (now cluster.XID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at != 0 && p.at.Precedes(x) {
		return p.at, fmt.Errorf("VACUUM %s removed what is older than %s; rows from %s on were promised", table, x, p.at)
	}
	p.removed = later(p.removed, x)
	return p.at, nil
}

// gone is up to where rows are removed.
func (p *promise) gone() cluster.XID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removed
}

// cutoff is what VACUUM VERBOSE says it went by: from 15 on, and before.
var cutoff = regexp.MustCompile(`(?:removable cutoff|oldest xmin): (\d+)`)

// vacuums runs one VACUUM of the catalogs after the other until its context ends:
// each of them computes anew what it may remove, at some time while it runs.
func (l *loop) vacuums(ctx context.Context, _ *rand.Rand) error {
	config, err := pgx.ParseConfig(l.primary.Conninfo("", ""))
	if err != nil {
		return err
	}
	var said []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said = append(said, n.Message+n.Detail) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the test is over
	for ; ctx.Err() == nil; l.round() {
		for _, table := range []string{"pg_class", "pg_attribute", "pg_type", "pg_depend"} {
			var oldest uint32 // of the slots themselves: they only move on
			if err := conn.QueryRow(ctx, "SELECT min(catalog_xmin::text::bigint) FROM pg_replication_slots WHERE slot_name ~ '^cdc'").Scan(&oldest); err != nil {
				return ended(ctx, err)
			}
			said = said[:0]
			if _, err := conn.Exec(ctx, "VACUUM (VERBOSE) pg_catalog."+table); err != nil {
				return ended(ctx, err)
			}
			if err := l.judge(table, said, cluster.XID(oldest)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended is an error, but for one that the end of the context has made.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// judge compares what a VACUUM went by with what is promised.
func (l *loop) judge(table string, said []string, oldestSlot cluster.XID) error {
	found := false
	for _, text := range said {
		for _, match := range cutoff.FindAllStringSubmatch(text, -1) {
			found = true
			at, err := l.promised.goes(table, xid(match[1]))
			if err != nil {
				return err
			}
			l.ran++
			if at != 0 && at.Precedes(oldestSlot) {
				l.heldBack++
			}
		}
	}
	if !found {
		return fmt.Errorf("VACUUM %s does not say what it went by: %q", table, said)
	}
	return nil
}

// round tells whoever waits that all tables were vacuumed once more.
func (l *loop) round() {
	select {
	case l.rounds <- struct{}{}:
	default: // nobody waits
	}
}

// vacuumed waits until all tables were vacuumed under what is promised now.
func (l *loop) vacuumed(ctx context.Context) {
	for range 2 { // the first may have begun before
		select {
		case <-l.rounds:
		case <-ctx.Done():
			return
		}
	}
}

// comer creates a slot and drops it again, over and over: it begins with the oldest
// that is pinned, and has the server compute anew what that is.
func (g *stage) comer(slot string) func(context.Context, *rand.Rand) error {
	return g.again(fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'test_decoding', true)", slot),
		fmt.Sprintf("SELECT pg_drop_replication_slot('%s')", slot))
}

// again has the primary do these things over and over until its context ends.
func (g *stage) again(things ...string) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, _ *rand.Rand) error {
		conn, err := g.primary.Connect(ctx, "", "")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the test is over
		for ctx.Err() == nil {
			for _, sql := range things {
				if _, err := conn.Exec(ctx, sql); err != nil {
					return ended(ctx, err)
				}
			}
		}
		return nil
	}
}
