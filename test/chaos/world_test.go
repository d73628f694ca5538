package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// leaseTTL is short, so that a stopped controller is behind its lease soon.
const leaseTTL = 3 * time.Second

// patience bounds what must come about; it measures nothing.
const patience = 2 * time.Minute

// world is everything that runs.
type world struct {
	t       *testing.T
	ctx     context.Context
	cancel  context.CancelFunc
	seed    uint64
	step    int
	inStep  bool
	roundNo int
	begun   time.Time

	lab       *lab.Cluster
	etcd      *lab.Etcd
	nodes     []*lab.Node              // in the order of their names
	upstream  map[*lab.Node]*lab.Node  // of each standby
	begunLate map[*lab.Node]bool       // standbys made anew after the beginning
	primary   atomic.Pointer[lab.Node] // nil while nobody may use one
	daemons   []*daemon
	load      *lab.Load
	talk      *talk // logical messages
	readers   []*reader
	churn     churn

	observer *observer
	claims   *claims
	report   *report

	mu         sync.Mutex
	violations []string
	moved      map[string]cluster.LSN // the furthest that each slot was made at or moved to by hand
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{t: t, ctx: ctx, cancel: cancel, seed: seed, begun: time.Now(), upstream: map[*lab.Node]*lab.Node{}, begunLate: map[*lab.Node]bool{}, moved: map[string]cluster.LSN{}, report: newReport()}
	w.say("seed %d", seed)
	bin, err := lab.FindPG(harness.Major(t))
	w.must(err)
	w.lab, err = lab.NewCluster(ctx, lab.Options{BinDir: bin, Keep: true, Settings: map[string]string{
		"max_wal_size": "96MB", "min_wal_size": "32MB", "max_replication_slots": "30", "max_wal_senders": "30",
	}})
	w.must(err)
	t.Cleanup(func() {
		w.must(w.lab.Close())
		w.nobodyLeft()
		if !t.Failed() {
			w.must(os.RemoveAll(w.lab.Dir()))
		} else {
			t.Logf("seed %d: the folder is left: %s", seed, w.lab.Dir())
		}
	})
	w.startNodes()
	w.startDaemons()
	w.startReaders()
	w.observer = watchNodes(w)
	w.claims = watchClaims(w)
	w.recover() // from not having been
	return w
}

// must ends the step where the scene itself fails, or the test outside of steps.
func (w *world) must(err error) {
	w.t.Helper()
	switch {
	case err == nil:
	case w.inStep:
		panic(failedStep{err})
	default:
		w.t.Fatalf("seed %d step %d: %v", w.seed, w.step, err)
	}
}

type failedStep struct{ err error }

// do carries out one step. One that fails is an error of the test, and the round
// goes on from there.
func (w *world) do(c choice) {
	w.inStep = true
	defer func() {
		w.inStep = false
		switch failed := recover().(type) {
		case nil:
		case failedStep:
			w.violate("the step could not be carried out: %v", failed.err)
			if w.primary.Load() == nil {
				w.t.Fatal("there is no primary")
			}
		default:
			panic(failed)
		}
	}()
	c.fault.do(w, c)
}

func (w *world) startNodes() {
	a, err := w.lab.AddPrimary(w.ctx, "a")
	w.must(err)
	w.must(lab.SetupRole(w.ctx, a))
	w.must(lab.SetupLoad(w.ctx, a))
	w.nodes = []*lab.Node{a}
	w.primary.Store(a)
	direct := make([]*lab.Node, 3)
	var group errgroup.Group
	for i := range direct {
		group.Go(func() error {
			var err error
			direct[i], err = w.lab.AddStandby(w.ctx, string(rune('b'+i)), a, lab.StandbyOptions{Feedback: i%2 == 0})
			return err
		})
	}
	w.must(group.Wait())
	w.nodes = append(w.nodes, direct...)
	e, err := w.lab.AddStandby(w.ctx, "e", direct[0], lab.StandbyOptions{})
	w.must(err)
	w.nodes = append(w.nodes, e)
	for _, n := range direct {
		w.upstream[n] = a
	}
	w.upstream[e] = direct[0]
	for _, slot := range steadySlots {
		w.must(w.createSlot(a, slot.name))
		w.must(w.noteMoved(w.ctx, a, slot.name))
	}
}

func (w *world) createSlot(n *lab.Node, name string) error {
	return n.Exec(w.ctx, fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", name))
}

// standbys are all nodes but the primary, running or not.
func (w *world) standbys() []*lab.Node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *lab.Node) bool { return n == w.primary.Load() })
}

// begin starts the load of a round, with rows that no earlier round had.
func (w *world) begin() {
	p := w.primary.Load()
	options := lab.LoadOptions{
		Seed: w.seed<<8 + uint64(w.roundNo), After: int64(w.roundNo) * 100_000_000,
		Short: 1, Nested: 1, Long: 2, Changing: 1, Checkpoints: 3 * time.Second,
	}
	w.load = lab.StartLoad(w.ctx, p, options)
	w.talk = w.startTalk()
	for _, r := range w.readers {
		r.fresh()
	}
}

// violate notes what must never be, and goes on.
func (w *world) violate(format string, args ...any) {
	w.t.Helper()
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.violations = append(w.violations, text)
	w.mu.Unlock()
	w.t.Errorf("VIOLATION seed %d step %d: %s", w.seed, w.step, text)
}

// tooMany: what follows from one violation tells nothing new.
func (w *world) tooMany() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) >= 5
}

// wait asks a condition until it holds; false and a violation where it never does.
func (w *world) wait(what string, within time.Duration, condition func() (bool, string)) bool {
	w.t.Helper()
	for end := time.Now().Add(within); ; {
		done, why := condition()
		if done {
			return true
		}
		if time.Now().After(end) || w.ctx.Err() != nil {
			w.violate("waited %s in vain for %s: %s", within, what, why)
			return false
		}
		w.sleep(50 * time.Millisecond)
	}
}

func (w *world) sleep(d time.Duration) {
	select {
	case <-w.ctx.Done():
	case <-time.After(d):
	}
}

// code is the SQLSTATE of an error, "" where the server did not give one.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// within bounds one call to a server.
func (w *world) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, d)
}

func (w *world) close() {
	w.claims.stop()
	w.observer.stop()
	for _, r := range w.readers {
		r.end()
	}
	w.cancel()
	if w.load != nil {
		_ = w.load.Stop(w.ctx) // said already, or the servers are gone
	}
	if w.talk != nil {
		w.talk.stop()
	}
	w.readLogs()
	w.report.print(w)
}

// nobodyLeft looks for processes that were started in the lab's folder.
func (w *world) nobodyLeft() {
	entries, err := os.ReadDir("/proc")
	w.must(err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(string(text), w.lab.Dir()) {
			w.violate("process %s is left: %s", e.Name(), strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
}
