package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// behind leaves app's restart_lsn so many bytes behind what is confirmed, for so long.
func behind(w *world, bytes cluster.LSN, stands time.Duration) {
	a := app(w, "a")
	w.write(bytes)
	a.Confirmed = cluster.Some(a.Restart.V + bytes)
	w.receive("b", w.primary().node.Insert.V)
	w.receive("c", w.primary().node.Insert.V)
	w.turn()
	w.now = w.memory.Slots["app"].RestartSince.Add(stands)
	w.turn()
}

func (w *world) condition(code string) *Condition {
	for _, c := range w.conditions {
		if c.Code == code {
			return &c
		}
	}
	return nil
}

func TestRestartIsStuck(t *testing.T) {
	for _, x := range []struct {
		name   string
		bytes  cluster.LSN
		stands time.Duration
		want   Severity
	}{
		{"for less than half a minute", 100 << 20, 30*time.Second - 1, ""},
		{"for half a minute", 100 << 20, 30 * time.Second, Info},
		{"for nearly five", 100 << 20, 5*time.Minute - 1, Info},
		{"for five", 100 << 20, 5 * time.Minute, Warning},
		{"by less than 64 MB", 64<<20 - 1, 5 * time.Minute, ""},
		{"by 64 MB", 64 << 20, 5 * time.Minute, Warning},
	} {
		w := settled(t)
		behind(w, x.bytes, x.stands)
		var got Severity
		if c := w.condition(CondRestartStuck); c != nil {
			got = c.Severity
		}
		if got != x.want {
			t.Errorf("%s: %q, not %q", x.name, got, x.want)
		}
	}
}

// Whoever holds restart_lsn back has the id that is the slot's catalog_xmin; when
// it began says nothing: restart_lsn may have stood since long before.
func TestRestartIsStuckByTheOldestTransaction(t *testing.T) {
	for _, x := range []struct {
		name   string
		began  time.Duration // before now
		xmin   int           // catalog_xmin, counted from the transaction
		blamed bool
	}{
		{"it began long before", time.Hour, 0, true},
		{"it began after restart_lsn came to where it stands", time.Minute, 0, true},
		{"something older is still to be confirmed", time.Hour, -1, false},
		{"the slot is beyond it", time.Hour, 1, false},
	} {
		w := settled(t)
		writer := app(w, "a").CatalogXmin.V - cluster.XID(x.xmin)
		w.primary().node.OldestWriter = cluster.Some(cluster.Transaction{PID: 4711, XID: writer, Started: w.now.Add(5*time.Minute - x.began)})
		behind(w, 100<<20, 5*time.Minute)
		c := w.condition(CondRestartStuck)
		if c == nil {
			t.Fatalf("%s: not told of", x.name)
		}
		if blamed := strings.Contains(c.Message, "process 4711"); blamed != x.blamed {
			t.Errorf("%s: %s; %s", x.name, c.Message, c.Hint)
		}
	}
}

func TestLagIsTold(t *testing.T) {
	w := settled(t)
	behind(w, 100<<20, 6*time.Minute)
	if !w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}

// A restart_lsn that is seen for the first time, or has moved, stands from then on.
func TestSinceWhenRestartStands(t *testing.T) {
	before, now := epochZero, epochZero.Add(time.Minute)
	last := cluster.Some(cluster.Position{Restart: 7})
	for name, c := range map[string]struct {
		note SlotNote
		want time.Time
	}{
		"seen for the first time":         {SlotNote{}, now},
		"moved":                           {SlotNote{Last: cluster.Some(cluster.Position{Restart: 6}), RestartSince: before}, now},
		"stands":                          {SlotNote{Last: last, RestartSince: before}, before},
		"stands, nobody knows since when": {SlotNote{Last: last}, now},
	} {
		n := c.note
		n.noteRestart(now, cluster.Position{Restart: 7, Confirmed: 9})
		if !n.RestartSince.Equal(c.want) {
			t.Errorf("%s: since %s", name, n.RestartSince)
		}
	}
}
