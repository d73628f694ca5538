package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Publication is the one that SetupLoad makes for the load's tables.
const Publication = "lab"

// LoadOptions say how many writers of each kind work, and with which seed:
// the choices of each writer follow from the seed, their interleaving does not.
type LoadOptions struct {
	Seed        uint64
	After       int64         // the writers' transactions are numbered from here on
	Short       int           // writers of one to three rows at a time
	Nested      int           // writers with savepoints, rolled back and released
	Long        int           // writers that keep a transaction open for 0.5 to 2 s
	Changing    int           // writers that alter the table they write, and churn and vacuum catalogs
	Prepared    int           // writers that commit in two phases
	Messages    int           // writers of non-transactional logical messages; none on 13, whose pgoutput has no messages
	Checkpoints time.Duration // mean distance of checkpoints; 0 leaves them to the server
}

// DefaultLoad is the load under which other ways of mirroring lost rows:
// several long transactions always open, some of two phases, catalogs changing,
// checkpoints often.
func DefaultLoad(seed uint64) LoadOptions {
	return LoadOptions{Seed: seed, Short: 2, Nested: 1, Long: 3, Changing: 1, Prepared: 1, Messages: 1, Checkpoints: 700 * time.Millisecond}
}

// SetupLoad makes the load's tables and publication on a primary. Each row names
// its transaction, which a table's rewrite would hide from its own xmin.
func SetupLoad(ctx context.Context, primary *Node) error {
	err := primary.Exec(ctx, `
		CREATE TABLE lab_rows (writer int, tx bigint, part int, body text, top bigint DEFAULT txid_current(), PRIMARY KEY (writer, tx, part));
		CREATE TABLE lab_changing (writer int, tx bigint, part int, body text, num int, top bigint DEFAULT txid_current(), PRIMARY KEY (writer, tx, part));
		CREATE PUBLICATION lab FOR TABLE lab_rows, lab_changing`)
	if err != nil {
		return fmt.Errorf("making the load's tables: %w", err)
	}
	return nil
}

// Message is a non-transactional logical message that a server took.
type Message struct {
	Key  string
	Node string
	End  cluster.LSN // the end of its WAL record
}

// Load is a set of writers at work.
type Load struct {
	target  atomic.Pointer[Node]
	stop    chan struct{} // closed: finish the transaction at hand, begin none
	stopped sync.Once
	cancel  context.CancelFunc
	group   sync.WaitGroup
	failed  chan struct{} // closed at the first failure
	number  atomic.Int64  // transactions of the sentinel writer

	prepared []int32 // the writers that commit in two phases

	mu           sync.Mutex
	failure      error
	acknowledged map[txID]int // rows per transaction whose commit the server acknowledged
	messages     []Message
	paused       chan struct{} // closed by Resume; nil while they work
}

// StartLoad starts the writers on a primary. They go on until Stop, and on to
// another node when Retarget says so.
func StartLoad(ctx context.Context, primary *Node, options LoadOptions) *Load {
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{stop: make(chan struct{}), failed: make(chan struct{}), cancel: cancel, acknowledged: map[txID]int{}}
	l.target.Store(primary)
	l.number.Store(options.After)
	var id int32
	add := func(count int, act action) {
		for range count {
			id++
			w := &writer{load: l, id: id, tx: options.After, rng: rand.New(rand.NewPCG(options.Seed, uint64(id))), act: act}
			l.group.Go(func() { l.fail(w.run(ctx)) })
		}
	}
	add(options.Short, short)
	add(options.Nested, nested)
	add(options.Long, long)
	add(options.Changing, changing)
	for range options.Prepared {
		l.prepared = append(l.prepared, id+1)
		add(1, prepared)
	}
	if primary.cluster.decodesMessages() {
		add(options.Messages, message)
	}
	if options.Checkpoints > 0 {
		add(1, checkpoints(options.Checkpoints))
	}
	return l
}

// Retarget sends the writers to another node. Whoever has a session on the old
// one stays there until it breaks.
func (l *Load) Retarget(primary *Node) { l.target.Store(primary) }

// Pause has each writer finish its transaction and begin none until Resume. It does
// not wait for them.
func (l *Load) Pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused == nil {
		l.paused = make(chan struct{})
	}
}

// Resume undoes Pause.
func (l *Load) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused != nil {
		close(l.paused)
		l.paused = nil
	}
}

// waitPaused returns when the writers may work, or shall end.
func (l *Load) waitPaused(ctx context.Context) {
	l.mu.Lock()
	paused := l.paused
	l.mu.Unlock()
	if paused == nil {
		return
	}
	select {
	case <-paused:
	case <-l.stop:
	case <-ctx.Done():
	}
}

// Failed is closed when a writer failed other than by losing its server; Stop
// gives the reason.
func (l *Load) Failed() <-chan struct{} { return l.failed }

func (l *Load) fail(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure = err
		close(l.failed)
	}
}

// Stop lets each writer finish its transaction and returns when all have. It
// gives the first failure of a writer.
func (l *Load) Stop(ctx context.Context) error {
	l.stopped.Do(func() { close(l.stop) })
	done := make(chan struct{})
	go func() {
		l.group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		l.cancel()
		<-done
		return fmt.Errorf("stopping the writers: %w", ctx.Err())
	}
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// Acknowledged is how many rows stand in transactions whose commit a server acknowledged.
func (l *Load) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := 0
	for _, count := range l.acknowledged {
		rows += count
	}
	return rows
}

// Messages gives the logical messages that the servers took.
func (l *Load) Messages() []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Message(nil), l.messages...)
}

// Prepared names the writers that commit in two phases.
func (l *Load) Prepared() []int32 { return l.prepared }

// Forked forgets the messages that ended with their server, because its timeline
// went on from fork without them: those that had come to an end later. For a load
// that outlives more than one failover; to be called before the new primary writes.
func (l *Load) Forked(fork cluster.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = slices.DeleteFunc(l.messages, func(m Message) bool { return m.End > fork })
}

func (l *Load) acknowledge(tx txID, rows int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[tx] = rows
}

// Sentinel commits one row on the current target and gives its name. Slots send
// in the order of commits: who has received it has received all before it.
func (l *Load) Sentinel(ctx context.Context) (RowID, error) {
	id, err := l.SentinelOn(ctx, l.target.Load())
	if err != nil {
		return id, err
	}
	l.acknowledge(id.transaction(), 1)
	return id, nil
}

// SentinelOn commits such a row on a node that is not the load's, such as a copy.
func (l *Load) SentinelOn(ctx context.Context, node *Node) (RowID, error) {
	id := RowID{Tx: l.number.Add(1)}
	if err := node.Exec(ctx, insertRow, id.Writer, id.Tx, id.Part, body(id, "")); err != nil {
		return id, fmt.Errorf("writing a sentinel: %w", err)
	}
	return id, nil
}

// action is one transaction, or one other thing to do, of a writer.
type action func(ctx context.Context, w *writer, conn *pgx.Conn) error

type writer struct {
	load *Load
	id   int32
	node string // where the session is
	tx   int64
	rng  *rand.Rand
	act  action
}

func (w *writer) stopping() bool {
	select {
	case <-w.load.stop:
		return true
	default:
		return false
	}
}

// run keeps a session to the target. Losing the server is what the lab is for;
// anything else that goes wrong ends the writer with an error.
func (w *writer) run(ctx context.Context) error {
	for !w.stopping() && ctx.Err() == nil {
		node := w.load.target.Load()
		err := w.session(ctx, node)
		if err != nil && ctx.Err() == nil && !lostServer(err) {
			return fmt.Errorf("writer %d on node %q: %w", w.id, node.name, err)
		}
		w.pause(ctx, 20*time.Millisecond)
	}
	return nil
}

func (w *writer) session(ctx context.Context, node *Node) error {
	conn, err := node.Connect(ctx, "", "")
	if err != nil {
		return err
	}
	defer closeConn(conn)
	w.node = node.name
	// No cached plans or parameter types: the tables change under the writers.
	conn.Config().DefaultQueryExecMode = pgx.QueryExecModeExec
	for {
		w.load.waitPaused(ctx)
		if w.stopping() || ctx.Err() != nil {
			return nil
		}
		w.tx++
		if err := w.act(ctx, w, conn); err != nil && !transient(err) {
			return err
		}
	}
}

// pause sleeps, shorter when the load ends.
func (w *writer) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.load.stop:
	case <-ctx.Done():
	}
}

// between is a duration of at least lo and less than hi.
func (w *writer) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)))
}

// transient errors end a transaction, not the session: deadlocks, lock
// timeouts, and a server that still recovers.
func transient(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}

// lostServer tells a connection that broke, or a server that is starting,
// stopping or not promoted yet, from an error in the work itself.
func lostServer(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true
	}
	switch pg.Code {
	case "57P01", "57P02", "57P03", "25006", "53300":
		return true
	}
	return false
}
