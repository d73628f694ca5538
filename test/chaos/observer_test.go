package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// observer looks at every server all the time, with a session and into its folder,
// and asks nothing of slotkeeper's.
type observer struct {
	w      *world
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu    sync.Mutex
	lives map[string]int            // of a node's data folder: a rewound or copied one is another
	slots map[string]*slotPast      // by node, life, name, incarnation and source
	fence map[string]fencePast      // by node and life
	now   map[string]map[string]pos // by node: its logical slots as they were seen last
	reads int
}

type pos struct {
	restart, confirmed cluster.LSN
	xmin               cluster.XID
}

func (p pos) String() string { return fmt.Sprintf("(%s, %s, %d)", p.restart, p.confirmed, p.xmin) }

// slotPast is one slot directory's past. A crash may take back what was set a
// moment before, and nothing else: hence the read before the last.
type slotPast struct {
	server       string
	last, before pos
}

type fencePast struct {
	store string
	epoch int64
}

func watchNodes(w *world) *observer {
	ctx, cancel := context.WithCancel(w.ctx)
	o := &observer{w: w, cancel: cancel, lives: map[string]int{}, slots: map[string]*slotPast{}, fence: map[string]fencePast{}, now: map[string]map[string]pos{}}
	for _, n := range w.nodes {
		o.group.Go(func() { o.watch(ctx, n) })
	}
	return o
}

func (o *observer) stop() {
	o.cancel()
	o.group.Wait()
}

// newLife is told when a node's folder becomes another one.
func (o *observer) newLife(n *lab.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lives[n.Name()]++
	delete(o.now, n.Name())
}

func (o *observer) life(n *lab.Node) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lives[n.Name()]
}

func (o *observer) watch(ctx context.Context, n *lab.Node) {
	for ctx.Err() == nil {
		if n.Running() {
			o.session(ctx, n)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (o *observer) session(ctx context.Context, n *lab.Node) {
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	conn, err := n.Connect(bounded, "", lab.RoleName) // whose sessions the controller may end
	cancel()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // its server may be dead
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, 30*time.Second) // it may be stopped for a while
		err := o.look(bounded, n, conn)
		cancel()
		if err != nil {
			return
		}
		time.Sleep(150 * time.Millisecond)
	}
}

// The server's run is named by its checkpointer: a crash of one backend takes that
// along, and leaves the postmaster.
const positions = `SELECT s.slot_name, coalesce(s.restart_lsn, '0/0')::text, coalesce(s.confirmed_flush_lsn, '0/0')::text,
	coalesce(s.catalog_xmin::text, '0'), (SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE backend_type = 'checkpointer')
	FROM pg_replication_slots s WHERE s.slot_type = 'logical' AND NOT s.temporary AND s.restart_lsn IS NOT NULL AND s.confirmed_flush_lsn IS NOT NULL`

func (o *observer) look(ctx context.Context, n *lab.Node, conn *pgx.Conn) error {
	life := o.life(n)
	before := directories(n)
	rows, err := conn.Query(ctx, positions)
	if err != nil {
		return err
	}
	seen := map[string]pos{}
	server := ""
	var name, restart, confirmed, xmin string
	_, err = pgx.ForEachRow(rows, []any{&name, &restart, &confirmed, &xmin, &server}, func() error {
		var p pos
		var err1, err2 error
		p.restart, err1 = cluster.ParseLSN(restart)
		p.confirmed, err2 = cluster.ParseLSN(confirmed)
		x, err3 := strconv.ParseUint(xmin, 10, 32)
		if err1 != nil || err2 != nil || err3 != nil {
			return fmt.Errorf("reading the positions of slot %s: %q %q %q", name, restart, confirmed, xmin)
		}
		p.xmin = cluster.XID(x)
		seen[name] = p
		return nil
	})
	if err != nil {
		return err
	}
	after := directories(n)
	epoch, fenced := readFence(n)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lives[n.Name()] != life {
		return nil
	}
	o.reads++
	o.now[n.Name()] = seen
	for name, p := range seen {
		if before[name] != "" && before[name] == after[name] { // else it was dropped or made meanwhile
			o.compare(n, fmt.Sprintf("%s/%d/%s/%s", n.Name(), life, name, after[name]), server, p)
		}
	}
	if fenced {
		o.compareFence(n, fmt.Sprintf("%s/%d", n.Name(), life), epoch)
	}
	return nil
}

func (o *observer) compare(n *lab.Node, key, server string, p pos) {
	past := o.slots[key]
	if past == nil {
		o.slots[key] = &slotPast{server: server, last: p, before: p}
		return
	}
	if past.server == server {
		if p.restart < past.last.restart || p.confirmed < past.last.confirmed || p.xmin.Precedes(past.last.xmin) {
			o.w.violate("on %s a slot moved backward: %s was at %v and is at %v", n.Name(), key, past.last, p)
		}
		past.before, past.last = past.last, p
		return
	}
	// Only F may be forgotten: it is not saved at each move.
	if p.restart < past.before.restart || p.xmin.Precedes(past.before.xmin) {
		o.w.violate("on %s a restart took a slot back: %s was at %v, then %v, and is at %v", n.Name(), key, past.before, past.last, p)
	}
	past.server, past.before, past.last = server, p, p
}

func (o *observer) compareFence(n *lab.Node, key string, f fencePast) {
	past, known := o.fence[key]
	if known && past.store == f.store && f.epoch < past.epoch {
		o.w.violate("the fence on %s went from epoch %d to %d", n.Name(), past.epoch, f.epoch)
	}
	o.fence[key] = f
}

// positions are those of a node's slots as they were seen last.
func (o *observer) positions(n *lab.Node) map[string]pos {
	o.mu.Lock()
	defer o.mu.Unlock()
	copied := map[string]pos{}
	for name, p := range o.now[n.Name()] {
		copied[name] = p
	}
	return copied
}

// directories tells each slot's directory from a later one of the same name, and a
// mirror of one original from that of another.
func directories(n *lab.Node) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(n.DataDir(), "pg_replslot"))
	if err != nil {
		return found
	}
	for _, e := range entries {
		path := filepath.Join(n.DataDir(), "pg_replslot", e.Name())
		var s unix.Statx_t
		if !e.IsDir() || unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s) != nil {
			continue
		}
		source := ""
		for key, value := range keyValues(filepath.Join(path, "slotkeeper")) {
			if strings.HasPrefix(key, "source_") {
				source += " " + value
			}
		}
		found[e.Name()] = fmt.Sprintf("%d-%d.%09d from%s", s.Ino, s.Btime.Sec, s.Btime.Nsec, source)
	}
	return found
}

func readFence(n *lab.Node) (fencePast, bool) {
	values := keyValues(filepath.Join(n.DataDir(), "pg_replslot", "slotkeeper.fence"))
	epoch, err := strconv.ParseInt(values["epoch"], 10, 64)
	return fencePast{store: values["store"], epoch: epoch}, err == nil
}

// keyValues reads one of slotkeeper's small files, as an administrator would.
func keyValues(path string) map[string]string {
	values := map[string]string{}
	text, err := os.ReadFile(path)
	if err != nil {
		return values
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = value
		}
	}
	return values
}
