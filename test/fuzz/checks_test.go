package fuzz

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// bad tells the logical slots of a standby that no consumer may ever find.
const bad = `SELECT name::text FROM slotkeeper.slots() WHERE kind = 'logical' AND
	((marker).kind IS DISTINCT FROM 'mirror' OR (marker).way IS NULL OR restart_lsn IS NULL OR confirmed_flush_lsn IS NULL
	 OR catalog_xmin IS NULL OR temporary OR NOT saved)`

// foreignSlots is all of the slots that are not ours, as text.
const foreignSlots = `SELECT row(slot_name, plugin, slot_type, datoid, temporary, xmin, catalog_xmin, restart_lsn, confirmed_flush_lsn,
	(SELECT incarnation FROM slotkeeper.slots() s WHERE s.name = slot_name))::text FROM pg_replication_slots WHERE slot_name ~ '^foreign' ORDER BY 1`

// alarm also knows what a server says, and then mends, when a transaction has left
// a pin, a reference, a snapshot or a file open.
var alarm = regexp.MustCompile(`PANIC|FATAL|TRAP|terminated by signal|runtime error|server process .* exited|WARNING:.*(leak|not closed)`)

// witness remembers how a server was before it was fuzzed.
type witness struct {
	node    *lab.Node
	started string
	foreign string
	log     int
}

func (g *stage) witness(n *lab.Node) *witness {
	g.T.Helper()
	return &witness{node: n, started: g.Text(n, "SELECT pg_postmaster_start_time()"), foreign: g.foreign(n), log: len(g.log(n))}
}

func (g *stage) foreign(n *lab.Node) string { return strings.Join(g.Rows(n, foreignSlots), "\n") }

func (g *stage) log(n *lab.Node) string {
	text, err := os.ReadFile(n.LogFile())
	g.OK(err)
	return string(text)
}

// unharmed checks that the server is the one that it was, with the sessions of
// these backends still open, and that nothing of theirs is left behind.
func (g *stage) unharmed(w *witness, backends []uint32) {
	g.T.Helper()
	n := w.node
	if now := g.Text(n, "SELECT pg_postmaster_start_time()"); now != w.started {
		g.T.Errorf("%s was started at %s, and again at %s", n.Name(), w.started, now)
	}
	for _, line := range strings.Split(g.log(n)[w.log:], "\n") {
		if alarm.MatchString(line) {
			g.T.Errorf("%s says: %s", n.Name(), line)
		}
	}
	if now := g.foreign(n); now != w.foreign {
		g.T.Errorf("slots of others on %s were\n%s\nand are\n%s", n.Name(), w.foreign, now)
	}
	pids := strings.ReplaceAll(strings.Trim(fmt.Sprint(append([]uint32{0}, backends...)), "[]"), " ", ",")
	for what, sql := range map[string]string{
		"locks": "SELECT locktype || ' ' || mode FROM pg_locks WHERE pid IN (" + pids + ")",
		"slots": "SELECT slot_name::text FROM pg_replication_slots WHERE active_pid IN (" + pids + ")",
	} {
		if left := g.Rows(n, sql); len(left) > 0 {
			g.T.Errorf("sessions on %s are idle and hold %s: %q", n.Name(), what, left)
		}
	}
	for _, pid := range backends {
		g.holdsNoFile(n, pid)
	}
	g.noDebris(n)
}

// holdsNoFile checks that an idle backend has no file of slots or snapshots open, nor of
// WAL on a standby; on a primary it keeps the one that it has written into.
func (g *stage) holdsNoFile(n *lab.Node, pid uint32) {
	g.T.Helper()
	ours := regexp.MustCompile(`/pg_replslot|/pg_logical|slotkeeper\.fence`)
	if n == g.standby {
		ours = regexp.MustCompile(ours.String() + "|/pg_wal")
	}
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	g.OK(err)
	for _, entry := range entries {
		path, err := os.Readlink(filepath.Join(folder, entry.Name()))
		if err == nil && ours.MatchString(path) {
			g.T.Errorf("an idle session on %s has %s open", n.Name(), path)
		}
	}
}

// noDebris checks that no temporary file is left where the extension writes.
func (g *stage) noDebris(n *lab.Node) {
	g.T.Helper()
	for _, folder := range []string{"pg_replslot", "pg_logical/snapshots"} {
		err := filepath.WalkDir(filepath.Join(n.DataDir(), folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".tmp") {
				g.T.Errorf("%s is left", path)
			}
			return nil // what vanishes meanwhile is not left
		})
		g.OK(err)
	}
}

// whole checks that each logical slot of a standby is a proven mirror, by its
// marker and by a walk of the standby's own.
func (g *stage) whole(n *lab.Node, when string) {
	g.T.Helper()
	if half := g.Rows(n, bad); len(half) > 0 {
		g.T.Errorf("%s, %s has half slots: %q", when, n.Name(), half)
	}
	unproven := g.Rows(n, `SELECT name || ' at ' || restart_lsn || ' by ' || (marker).way FROM slotkeeper.slots(),
		LATERAL slotkeeper.consistent_point(restart_lsn, confirmed_flush_lsn, NULL, 9223372036854775807) p
		WHERE kind = 'logical' AND restart_lsn <= confirmed_flush_lsn AND restart_lsn > '0/0' AND p.way IS NULL`)
	if len(unproven) > 0 {
		g.T.Errorf("%s, nothing proves on %s: %q", when, n.Name(), unproven)
	}
}

// decodes makes all mirrors anew at what the primary shows, promotes the standby,
// and compares what comes from each slot there with what comes on the primary.
func (g *stage) decodes(n *lab.Node) {
	g.T.Helper()
	g.passAll(n)
	c := g.controller(1, "me")
	c.afresh(n)
	c.all(n, "made")
	g.promoted(n)
}

// promoted promotes a standby and compares what comes from each mirror there, once
// settled, if any, has ended.
func (g *stage) promoted(n *lab.Node, settled ...func()) {
	g.T.Helper()
	g.Exec(g.primary, "INSERT INTO t SELECT generate_series(100, 200)")
	want := map[string][]string{}
	for _, slot := range g.slots {
		want[slot] = g.Peek(g.primary, slot)
	}
	g.OK(n.WaitCatchup(g.Ctx, g.primary))
	g.OK(n.Promote(g.Ctx))
	for _, wait := range settled {
		wait()
	}
	for _, slot := range g.slots {
		if g.Has(n, slot) {
			g.noGap(n, slot, g.Get(n, slot), want[slot])
		}
	}
}

// noGap checks that what came ends with what is wanted: what comes before it the
// consumer had confirmed already.
func (g *stage) noGap(n *lab.Node, slot string, got, want []string) {
	g.T.Helper()
	if len(want) == 0 {
		g.T.Error("the scene is not set: no rows are wanted")
	}
	if len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		g.T.Errorf("slot %s on %s gives %d rows that do not end with the %d wanted:\n%.2000q\nwanted:\n%.2000q", slot, n.Name(), len(got), len(want), got, want)
	}
}
