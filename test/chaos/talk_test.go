package chaos

import (
	"context"
	"fmt"
	"time"
)

// talk writes logical messages that are no transaction's: a slot owes each one
// whose record lies at or behind its position. What became of them is looked at on
// the copies, where the WAL says which there are.
type talk struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func (w *world) startTalk() *talk {
	ctx, cancel := context.WithCancel(w.ctx)
	t := &talk{cancel: cancel, ended: make(chan struct{})}
	round := w.roundNo
	go func() {
		defer close(t.ended)
		for i := 0; ctx.Err() == nil; i++ {
			if p := w.primary.Load(); p != nil {
				bounded, done := context.WithTimeout(ctx, 5*time.Second)
				// Its server may be away; the next message is another one.
				_ = p.Exec(bounded, "SELECT pg_logical_emit_message(false, 'lab', $1::text)", fmt.Sprintf("round %d message %d", round, i))
				done()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return t
}

func (t *talk) stop() {
	t.cancel()
	<-t.ended
}
