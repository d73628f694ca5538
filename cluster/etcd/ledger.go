package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// MaxPart is the largest value of one part, in bytes.
const MaxPart = 64 << 10

// MaxSave is how many bytes are written in one transaction: etcd takes 1.5 MB.
const MaxSave = 1 << 20

// maxOps is how many parts: etcd takes 128 comparisons, one of which is the leader's.
const maxOps = 127

// PartCluster names the part that holds what is true of the whole cluster.
const PartCluster = "cluster"

// PartStandbys names the part that holds the state of each standby.
const PartStandbys = "standbys"

// PartSlots names the n-th part of the slots' verdicts.
func PartSlots(n int) string { return fmt.Sprintf("slots/%02d", n) }

// PartPositions names the n-th part of the slots' positions.
func PartPositions(n int) string { return fmt.Sprintf("positions/%02d", n) }

var partName = regexp.MustCompile(`^(cluster|standbys|(slots|positions)/[0-9]{2,4})$`)

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

// Save puts these values into their parts, all of them or none, if the term
// still leads and each part is as this ledger last saw it (absent, where it saw
// none). A value that is there already is not written. Over MaxSave it takes
// several transactions, and a reader may find some of them. Errors: ErrFenced,
// ErrConflict, ErrTooLarge, ErrUnreachable (which may have written), ErrRefused,
// ErrNoSpace.
func (l *Ledger) Save(ctx context.Context, t *Term, parts map[string][]byte) error {
	names := slices.Sorted(maps.Keys(parts))
	for _, name := range names {
		if size := len(parts[name]); size > MaxPart {
			return fmt.Errorf("writing ledger part %s: %d bytes, %d at most: %w", name, size, MaxPart, ErrTooLarge)
		}
	}
	return l.change(ctx, t, "writing", names, parts)
}

// Delete takes a part away, under the same conditions as Save.
func (l *Ledger) Delete(ctx context.Context, t *Term, part string) error {
	return l.change(ctx, t, "deleting", []string{part}, nil)
}

// change writes the parts' values, or deletes a part that has none in values.
func (l *Ledger) change(ctx context.Context, t *Term, doing string, names []string, values map[string][]byte) error {
	doing += " ledger part " + strings.Join(names[:min(len(names), 3)], ", ")
	if more := len(names) - 3; more > 0 {
		doing += fmt.Sprintf(" and %d more", more)
	}
	for _, name := range names {
		if !partName.MatchString(name) {
			return fmt.Errorf("%s: no such part: want cluster, standbys, slots/<nn> or positions/<nn>", doing)
		}
	}
	if !t.Valid(time.Now()) {
		return fmt.Errorf("%s: epoch %d: %w", doing, t.epoch, ErrFenced)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.settle(ctx, names); err != nil {
		return err
	}
	for rest := names; len(rest) > 0; {
		var one batch
		if one, rest = l.next(rest, values); len(one.names) == 0 {
			continue
		}
		if err := l.commit(ctx, t, doing, one); err != nil {
			return err
		}
	}
	return nil
}

// batch is one transaction.
type batch struct {
	names  []string
	as     []clientv3.Cmp // as they were last seen
	ops    []clientv3.Op
	values map[string][]byte
}

// next takes of names what fits into one transaction, leaves out what is there
// already, and gives the rest.
func (l *Ledger) next(names []string, values map[string][]byte) (w batch, rest []string) {
	w.values = values
	size := 0
	for i, name := range names {
		value, put := values[name]
		seen, key := l.seen[name], l.c.key("ledger/"+name)
		if put && seen.ModRevision != 0 && bytes.Equal(seen.Value, value) || !put && seen.ModRevision == 0 {
			continue
		}
		if size += len(value); len(w.names) > 0 && size > MaxSave || len(w.names) == maxOps {
			return w, names[i:]
		}
		op := clientv3.OpDelete(key)
		if put {
			op = clientv3.OpPut(key, string(value))
		}
		w.names, w.ops = append(w.names, name), append(w.ops, op)
		w.as = append(w.as, clientv3.Compare(clientv3.ModRevision(key), "=", seen.ModRevision))
	}
	return w, nil
}

func (l *Ledger) commit(ctx context.Context, t *Term, doing string, w batch) error {
	var resp *clientv3.TxnResponse
	err := l.c.do(ctx, doing, func(ctx context.Context) error {
		var err error
		resp, err = l.c.v3.Txn(ctx).
			If(append([]clientv3.Cmp{l.c.isLeader(t.epoch)}, w.as...)...).
			Then(w.ops...).
			Else(clientv3.OpGet(l.c.key("leader"), clientv3.WithKeysOnly())).Commit()
		return err
	})
	if err != nil {
		for _, name := range w.names {
			l.doubt[name] = !definite(err)
		}
		return err
	}
	if !resp.Succeeded {
		leader := resp.Responses[0].GetResponseRange().Kvs
		if len(leader) == 0 || leader[0].CreateRevision != int64(t.epoch) {
			return fmt.Errorf("%s: epoch %d: %w", doing, t.epoch, ErrFenced)
		}
		return fmt.Errorf("%s: %w", doing, ErrConflict)
	}
	for _, name := range w.names {
		delete(l.seen, name)
		if value, put := w.values[name]; put {
			l.seen[name] = Part{Value: bytes.Clone(value), ModRevision: resp.Header.Revision}
		}
	}
	return nil
}

// settle reads those parts again whose last write had no answer. Nobody but
// this term's leader can have written them meanwhile: the write that follows is
// fenced by the epoch as any other.
func (l *Ledger) settle(ctx context.Context, names []string) error {
	for _, name := range names {
		if !l.doubt[name] {
			continue
		}
		err := l.c.do(ctx, "reading ledger part "+name, func(ctx context.Context) error {
			resp, err := l.c.v3.Get(ctx, l.c.key("ledger/"+name))
			if err != nil {
				return err
			}
			delete(l.seen, name)
			if len(resp.Kvs) > 0 {
				l.seen[name] = partOf(resp.Kvs[0])
			}
			return nil
		})
		if err != nil {
			return err
		}
		delete(l.doubt, name)
	}
	return nil
}

// IsFenced reports whether err says that a term does not lead any more.
func IsFenced(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrLost) || errors.Is(err, ErrDeadline)
}
