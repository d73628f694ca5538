package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/patroni"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

// lookout keeps the facts of a switchover: etcd, the daemon and each server are
// asked again and again, each by itself, so that none that hangs hides the others.
type lookout struct {
	config *config.Config
	store  *store
	api    *patroni.REST

	end    context.CancelFunc
	hangUp context.CancelFunc // ends the waiting for Patroni's answer, which may never come
	work   sync.WaitGroup

	etcd sync.Mutex // one look at etcd at a time: what was read earlier never covers what is newer

	mu       sync.Mutex
	known    switchover.Facts
	view     patroni.View
	revision int64             // of the record
	asked    map[string]func() // ends the asking of a member's server
	address  map[string]string
}

const (
	readEvery = 100 * time.Millisecond // servers: what bounds how well an outage is measured
	etcdEvery = 200 * time.Millisecond
	// firstLook is the longest that the first look at all members may take.
	firstLook = 5 * time.Second
)

func newLookout(c *config.Config, st *store, api *patroni.REST) *lookout {
	l := &lookout{config: c, store: st, api: api, asked: map[string]func(){}, address: map[string]string{}}
	l.known.Nodes = map[string]plan.Fact[switchover.Node]{}
	l.known.Record.Err, l.known.Keys.Err, l.known.Status.Err = late, late, late
	return l
}

// begin starts to look, and returns when everybody was asked once.
func (l *lookout) begin(ctx context.Context) error {
	if _, err := readPatroni(ctx, l.config); err != nil {
		return err
	}
	ctx, l.end = context.WithCancel(ctx)
	if err := l.readEtcd(ctx); err != nil {
		return exitf(exitUnknown, "%w", err)
	}
	l.work.Go(func() { every(ctx, etcdEvery, func() { _ = l.readEtcd(ctx) }) }) // it is in the facts
	asked := make(chan struct{})
	w := &waiter{config: l.config}
	l.work.Go(func() {
		l.readStatus(ctx, w)
		close(asked)
		every(ctx, etcdEvery, func() { l.readStatus(ctx, w) })
	})
	over := time.After(firstLook)
	for {
		select {
		case <-asked:
			if l.complete() {
				return nil
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return exitf(exitError, "interrupted; nothing was asked")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *lookout) close() {
	for _, cancel := range []context.CancelFunc{l.end, l.hangUp} {
		if cancel != nil {
			cancel()
		}
	}
	l.work.Wait()
	_ = l.store.Close() // everything that counts was answered
}

func every(ctx context.Context, pause time.Duration, do func()) {
	for {
		select {
		case <-time.After(pause):
			do()
		case <-ctx.Done():
			return
		}
	}
}

// complete reports whether each member's server has answered, or not.
func (l *lookout) complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.known.Keys.Value.Members {
		if l.known.Nodes[m.Name].At.IsZero() {
			return false
		}
	}
	return true
}

// facts is all that is known now.
func (l *lookout) facts() switchover.Facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.known
	f.Now, f.Nodes = time.Now(), maps.Clone(f.Nodes)
	return f
}

// readEtcd reads Patroni's keys, the record, and what gates have said.
func (l *lookout) readEtcd(ctx context.Context) error {
	l.etcd.Lock()
	defer l.etcd.Unlock()
	keys, err := l.store.client.ReadKeys(ctx, patroniFolder(l.config))
	view := patroni.Parse(keys)
	record := plan.Fact[cluster.Opt[switchover.Record]]{At: time.Now()}
	text, revision, rerr := l.store.client.Switchover(ctx)
	switch {
	case rerr != nil:
		record.Err = oneLine(rerr.Error())
	case text != nil:
		r, perr := switchover.ParseRecord(text)
		if record.Value = cluster.Some(r); perr != nil {
			record.Err = fmt.Sprintf("%v; %q takes it away", perr, giveUp(l.config))
		}
	}
	l.mu.Lock()
	timeline := record.Value.V.Timeline
	if timeline == 0 {
		timeline = l.known.Nodes[view.Leader.Or("")].Value.Node.Timeline
	}
	l.mu.Unlock()
	answers, aerr := l.store.client.Answers(ctx, timeline)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Keys = plan.Fact[switchover.Keys]{At: time.Now(), Value: l.known.Keys.Value}
	if err != nil {
		l.known.Keys.Err = oneLine(err.Error())
	} else {
		l.known.Keys.Value, l.view = keysOf(view), view
		l.follow(ctx)
	}
	l.known.Record, l.revision = record, revision
	if aerr == nil {
		l.known.Gate = nil
		for _, a := range answers.Last {
			l.known.Gate = append(l.known.Gate, switchover.Answer(a))
		}
	}
	return errors.Join(err, rerr)
}

// keysOf puts Patroni's keys into the form that the steps work on.
func keysOf(v patroni.View) switchover.Keys {
	k := switchover.Keys{
		Leader: v.Leader, Paused: v.Config.Paused, StandbyCluster: v.Config.StandbyCluster, Synchronous: v.Config.Synchronous,
		Modified: v.FailoverModified, Retry: v.Config.RetryTimeout, Successors: map[cluster.Timeline]string{},
	}
	if v.Failover.OK {
		k.Failover = cluster.Some(switchover.Wanted{Leader: v.Failover.V.Leader, Candidate: v.Failover.V.Candidate})
	}
	for _, m := range v.Members {
		k.Members = append(k.Members, switchover.Member{
			Name: m.Name, NoFailover: m.Tags.NoFailover, Priority: m.Tags.FailoverPriority, NoSync: m.Tags.NoSync,
			Sync: v.Sync.Synchronous(m.Name), Running: m.Running, State: m.State, Unusable: m.Unusable,
		})
	}
	for _, fork := range v.History {
		k.Successors[fork.Timeline] = fork.Leader
	}
	return k
}

// follow begins to ask members that are new or have another address. The caller
// holds the lock.
func (l *lookout) follow(ctx context.Context) {
	for _, m := range l.view.Topology().Members {
		if stop, ok := l.asked[m.Name]; ok {
			if l.address[m.Name] == m.Conninfo {
				continue
			}
			stop()
		}
		own, stop := context.WithCancel(ctx)
		l.asked[m.Name], l.address[m.Name] = stop, m.Conninfo
		l.work.Go(func() { l.readServer(own, m) })
	}
}

func (l *lookout) readServer(ctx context.Context, m cluster.Member) {
	s, err := openSession(l.config, m)
	if err != nil {
		l.note(ctx, m.Name, switchover.Node{}, err)
		return
	}
	defer s.Close()
	for ctx.Err() == nil {
		n, err := readSwitchNode(ctx, s)
		l.note(ctx, m.Name, n, err)
		select {
		case <-time.After(readEvery):
		case <-ctx.Done():
		}
	}
}

func (l *lookout) note(ctx context.Context, name string, n switchover.Node, err error) {
	if ctx.Err() != nil {
		return // it was given up, and knows nothing
	}
	f := plan.Fact[switchover.Node]{Value: n, At: time.Now()}
	if err != nil {
		message, hint := postgres.Explain(err, name)
		f.Err, f.Hint = oneLine(message), hint
		f.Value.Stopped = errors.Is(err, syscall.ECONNREFUSED)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Nodes[name] = f
}

func readSwitchNode(ctx context.Context, s *postgres.Session) (switchover.Node, error) {
	r, err := s.Read(ctx)
	if err != nil {
		return switchover.Node{}, err
	}
	n := switchover.Node{NodeRead: plan.NodeRead{Node: r.Node, Slots: r.Slots, Walsenders: r.Walsenders}}
	if r.Node.InRecovery {
		err = s.Query(ctx, "reading pg_stat_wal_receiver", "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')",
			func(rows pgx.Rows) error { return rows.Scan(&n.Receiving) })
	}
	return n, err
}

// readStatus asks the daemon that leads, else the ledger.
func (l *lookout) readStatus(ctx context.Context, w *waiter) {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	s, err := w.look(ctx)
	if err != nil {
		known, lerr := w.askLeader(ctx)
		if lerr != nil {
			known, lerr = statusFromLedger(ctx, l.config)
		}
		if lerr == nil {
			s, err = checkScope(known, l.config, nil)
		}
	}
	if ctx.Err() != nil {
		return
	}
	f := plan.Fact[status.Status]{Value: s, At: time.Now()}
	doubt := ""
	if err != nil {
		f.Err = oneLine(err.Error())
	} else {
		doubt = freshness(s, l.config, f.At)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Status, l.known.Doubt = f, doubt
}
