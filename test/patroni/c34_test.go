//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

// stubborn is a consumer that reads and answers, and never confirms anything. With
// some life it hangs up after that, and connects again.
type stubborn struct {
	pid   atomic.Int32 // of its walsender
	began atomic.Int32 // how often it has connected
	end   context.CancelFunc
	done  chan struct{}
}

const stubbornName = "never confirms"

func (s *scene) stubborn(slot string, life time.Duration) *stubborn {
	ctx, end := context.WithCancel(s.Ctx)
	c := &stubborn{end: end, done: make(chan struct{})}
	nodes := s.p.Nodes()
	go func() {
		defer close(c.done)
		for ctx.Err() == nil {
			for _, n := range nodes {
				c.once(ctx, n, slot, life)
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	s.T.Cleanup(c.stop)
	s.until("the consumer to be connected", func() (bool, string) { return c.pid.Load() != 0, "it is not" })
	return c
}

func (c *stubborn) stop() {
	c.end()
	<-c.done
}

// once streams from a node, if that is the primary, until it ends or life is over.
func (c *stubborn) once(ctx context.Context, n *lab.Node, slot string, life time.Duration) {
	if life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, life)
		defer cancel()
	}
	conn, err := pgconn.Connect(ctx, n.Conninfo("", "")+" replication=database application_name='"+stubbornName+"'")
	if err != nil {
		return
	}
	defer func() {
		c.pid.Store(0)
		_ = conn.Conn().Close()
	}()
	if err := pglogrepl.StartReplication(ctx, conn, slot, 0, pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication}); err != nil {
		return
	}
	c.pid.Store(int32(conn.PID()))
	c.began.Add(1)
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok || len(data.Data) == 0 {
			return
		}
		if data.Data[0] == pglogrepl.PrimaryKeepaliveMessageByteID {
			// It lives, and has got nothing.
			if pglogrepl.SendStandbyStatusUpdate(ctx, conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: 1}) != nil {
				return
			}
		}
	}
}

// C34: a consumer that never confirms keeps the old primary from stopping. Its
// walsender is named, the end is its own exit code, whoever runs the command again
// goes on with it, Patroni is asked once; and when the consumer ends, so does it.
func TestC34ConsumerThatNeverConfirms(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]any{"ignore_slots": covering()})
	from := s.leader()
	s.Logical(from.Node(), "stuck")
	s.run()
	consumer := s.stubborn("stuck", 0)
	pid := consumer.pid.Load()
	s.Exec(from.Node(), "INSERT INTO t SELECT generate_series(1, 1000)")
	s.safe("cdc", "stuck")

	for range 2 {
		doc := s.switchover(6, switchover.OutcomeRunning, "--yes", "--timeout", "25s")
		if len(doc.Walsenders) == 0 || doc.Walsenders[0].PID != pid {
			t.Fatalf("the walsender %d is not named: %+v", pid, doc.Walsenders)
		}
		w := doc.Walsenders[0]
		if w.ApplicationName != stubbornName || w.Slot != "stuck" || !strings.HasPrefix(w.Client, "127.0.0.1 port ") || w.Behind.V <= 0 {
			t.Errorf("%+v", w)
		}
		if !strings.Contains(doc.Message, "still running") || !strings.Contains(doc.Message, fmt.Sprintf("walsender %d (application_name %s) from 127.0.0.1", pid, stubbornName)) {
			t.Error(doc.Message)
		}
		if n := s.requests(); n != 1 {
			t.Errorf("Patroni was asked %d times", n)
		}
	}
	consumer.stop()
	doc := s.switchover(0, switchover.OutcomeDone, "--yes")
	if !doc.Resumed {
		t.Errorf("%+v", doc)
	}
	s.done(doc, from.Name(), doc.To)
	if n := s.requests(); n != 1 {
		t.Errorf("Patroni was asked %d times", n)
	}
}

// C34: one that never confirms and connects again every second holds up nothing for
// longer than that.
func TestC34ConsumerThatReconnects(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]any{"ignore_slots": covering()})
	from := s.leader()
	s.Logical(from.Node(), "stuck")
	s.run()
	consumer := s.stubborn("stuck", time.Second)
	s.Exec(from.Node(), "INSERT INTO t SELECT generate_series(1, 1000)")
	s.safe("cdc", "stuck")
	doc := s.switchover(0, switchover.OutcomeDone, "--yes")
	s.done(doc, from.Name(), doc.To)
	began := consumer.began.Load()
	s.until("the consumer to come to the new primary", func() (bool, string) { return consumer.began.Load() > began, "it has not" })
	if n := s.requests(); n != 1 {
		t.Errorf("Patroni was asked %d times", n)
	}
	consumer.stop()
	// What it has not confirmed comes.
	if got := s.Rows(s.leader().Node(), "SELECT count(*)::text FROM pg_logical_slot_peek_changes('stuck', NULL, NULL) WHERE data LIKE 'table public.t: INSERT%'"); got[0] != "1000" {
		t.Errorf("%s of 1000 rows come", got[0])
	}
}
