package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// MaxPart is the largest value of one part, in bytes.
const MaxPart = 64 << 10

// PartCluster names the part that holds what is true of the whole cluster.
const PartCluster = "cluster"

// PartSlots names the n-th part of the slots' verdicts.
func PartSlots(n int) string { return fmt.Sprintf("slots/%02d", n) }

// PartPositions names the n-th part of the slots' positions.
func PartPositions(n int) string { return fmt.Sprintf("positions/%02d", n) }

var partName = regexp.MustCompile(`^(cluster|(slots|positions)/[0-9]{2,4})$`)

// Part is one part of the ledger as it was last seen.
type Part struct {
	Value       []byte
	ModRevision int64
}

// Ledger reads and writes the ledger's parts. It remembers what it last saw of
// each part, which is what its next write compares with. Safe for several goroutines.
type Ledger struct {
	c *Client

	mu    sync.Mutex
	seen  map[string]Part
	doubt map[string]bool // a write of this part had no answer: look again before the next one
}

// Ledger gives a ledger that has seen nothing yet: Load first.
func (c *Client) Ledger() *Ledger {
	return &Ledger{c: c, seen: map[string]Part{}, doubt: map[string]bool{}}
}

// Load reads every part, linearizably and in one revision, and remembers it.
func (l *Ledger) Load(ctx context.Context) (map[string]Part, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	root := l.c.key("ledger/")
	err := l.c.do(ctx, "reading the ledger", func(ctx context.Context) error {
		resp, err := l.c.v3.Get(ctx, root, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		l.seen, l.doubt = map[string]Part{}, map[string]bool{}
		for _, kv := range resp.Kvs {
			l.seen[strings.TrimPrefix(string(kv.Key), root)] = partOf(kv)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return maps.Clone(l.seen), nil
}

func partOf(kv *mvccpb.KeyValue) Part { return Part{Value: kv.Value, ModRevision: kv.ModRevision} }

// Write puts value into a part, if the term still leads and the part is as this
// ledger last saw it (absent, where it saw none). A value that is there already
// is not written. Errors: ErrFenced, ErrConflict, ErrTooLarge, ErrUnreachable
// (which may have written), ErrRefused, ErrNoSpace.
func (l *Ledger) Write(ctx context.Context, t *Term, part string, value []byte) error {
	if len(value) > MaxPart {
		return fmt.Errorf("writing ledger part %s: %d bytes, %d at most: %w", part, len(value), MaxPart, ErrTooLarge)
	}
	return l.change(ctx, t, part, "writing ledger part "+part, func(seen Part) (clientv3.Op, bool) {
		key := l.c.key("ledger/" + part)
		return clientv3.OpPut(key, string(value)), seen.ModRevision != 0 && bytes.Equal(seen.Value, value)
	}, bytes.Clone(value))
}

// Delete takes a part away, under the same conditions as Write.
func (l *Ledger) Delete(ctx context.Context, t *Term, part string) error {
	return l.change(ctx, t, part, "deleting ledger part "+part, func(seen Part) (clientv3.Op, bool) {
		return clientv3.OpDelete(l.c.key("ledger/" + part)), seen.ModRevision == 0
	}, nil)
}

// change does op on a part unless op's second result says that there is nothing
// to do. value is what the part then holds, nil for nothing.
func (l *Ledger) change(ctx context.Context, t *Term, part, doing string, op func(Part) (clientv3.Op, bool), value []byte) error {
	if !partName.MatchString(part) {
		return fmt.Errorf("%s: no such part: want cluster, slots/<nn> or positions/<nn>", doing)
	}
	if !t.Valid(time.Now()) {
		return fmt.Errorf("%s: epoch %d: %w", doing, t.epoch, ErrFenced)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.settle(ctx, part); err != nil {
		return err
	}
	seen := l.seen[part]
	do, nothing := op(seen)
	if nothing {
		return nil
	}
	resp, err := l.commit(ctx, t, part, doing, do, seen)
	if err != nil {
		return err
	}
	delete(l.seen, part)
	if value != nil {
		l.seen[part] = Part{Value: value, ModRevision: resp.Header.Revision}
	}
	return nil
}

func (l *Ledger) commit(ctx context.Context, t *Term, part, doing string, do clientv3.Op, seen Part) (*clientv3.TxnResponse, error) {
	key := l.c.key("ledger/" + part)
	var resp *clientv3.TxnResponse
	err := l.c.do(ctx, doing, func(ctx context.Context) error {
		var err error
		resp, err = l.c.v3.Txn(ctx).
			If(l.c.isLeader(t.epoch), clientv3.Compare(clientv3.ModRevision(key), "=", seen.ModRevision)).
			Then(do).
			Else(clientv3.OpGet(l.c.key("leader"), clientv3.WithKeysOnly())).Commit()
		return err
	})
	switch {
	case err != nil:
		l.doubt[part] = !definite(err)
		return nil, err
	case resp.Succeeded:
		return resp, nil
	}
	leader := resp.Responses[0].GetResponseRange().Kvs
	if len(leader) == 0 || leader[0].CreateRevision != int64(t.epoch) {
		return nil, fmt.Errorf("%s: epoch %d: %w", doing, t.epoch, ErrFenced)
	}
	return nil, fmt.Errorf("%s: %w since revision %d", doing, ErrConflict, seen.ModRevision)
}

// settle reads a part again whose last write had no answer. Nobody but this
// term's leader can have written it meanwhile: the write that follows is fenced
// by the epoch as any other.
func (l *Ledger) settle(ctx context.Context, part string) error {
	if !l.doubt[part] {
		return nil
	}
	err := l.c.do(ctx, "reading ledger part "+part, func(ctx context.Context) error {
		resp, err := l.c.v3.Get(ctx, l.c.key("ledger/"+part))
		if err != nil {
			return err
		}
		delete(l.seen, part)
		if len(resp.Kvs) > 0 {
			l.seen[part] = partOf(resp.Kvs[0])
		}
		return nil
	})
	if err != nil {
		return err
	}
	delete(l.doubt, part)
	return nil
}

// IsFenced reports whether err says that a term does not lead any more.
func IsFenced(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrLost) || errors.Is(err, ErrDeadline)
}
