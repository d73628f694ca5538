package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestD20GoneFileIsShippedAgain(t *testing.T) {
	w := settled(t)
	w.servers["b"].slots["app"].Snapshot = cluster.SnapshotAbsent
	o := w.observe()
	pl := Decide(w.now, w.policy, o, w.memory)
	if v := pl.Verdicts[0]; v.State != Pending || v.Reason != ReasonBadSnapshot {
		t.Fatalf("observed %+v", v)
	}
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if !kinds(w.plan)["apply/b"] {
		t.Fatalf("%s", describe(w.plan))
	}
}

func TestSnapshotsAreAskedForUntilThereIsOne(t *testing.T) {
	w := settled(t)
	w.servers["a"].files = map[cluster.LSN]bool{}
	w.catchUp("app")
	w.servers["a"].files = map[cluster.LSN]bool{}
	w.turn()
	slots := w.servers["a"].read().Slots
	if want := WantSnapshots(w.policy, w.memory, slots); len(want) != 1 || want[0] != app(w, "a").Restart.V {
		t.Fatalf("wanted %v", want)
	}
	w.servers["a"].files[app(w, "a").Restart.V] = true
	w.turn()
	if want := WantSnapshots(w.policy, w.memory, slots); len(want) != 0 {
		t.Fatalf("still wanted %v", want)
	}
	for _, k := range w.memory.Kept["app"] {
		if k.Position.Restart == app(w, "a").Restart.V && !k.Snapshot.OK {
			t.Error("the kept read did not get it")
		}
	}
}

// A new slot whose restart_lsn is no record that a file belongs to, and that
// nothing but another decoder's file proves.
func TestIdleSlotIsProvenByALaterFile(t *testing.T) {
	w := settled(t)
	s := w.createSlot("more")
	delete(w.servers["a"].files, s.Restart.V)
	w.provable = func(ch cluster.Change) bool { return ch.Snapshot.OK }
	w.turns(2)
	w.mustBe(t, "more", "b", Pending, ReasonNoConsistentPoint)
	if w.walked != 1 {
		t.Errorf("%d walks within an interval", w.walked)
	}

	at := s.Restart.V + 0x30
	w.servers["a"].later[s.Restart.V], w.servers["a"].files[at] = at, true
	w.now = w.now.Add(w.policy.Interval)
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
	m := w.servers["b"].slots["more"]
	if m.Marker.Way != laterFile || m.Marker.Witness != cluster.Some(at) {
		t.Fatalf("marker %+v", m.Marker)
	}
	walked := w.walked
	w.now = w.now.Add(w.policy.Interval)
	w.turn()
	if w.walked != walked {
		t.Error("walked again, though there is a file")
	}

	m.Snapshot = cluster.SnapshotAbsent
	if v := Decide(w.now, w.policy, w.observe(), w.memory).Verdicts; !slices.ContainsFunc(v, func(v Verdict) bool {
		return v.Slot == "more" && v.Reason == ReasonBadSnapshot && strings.Contains(v.Message, at.String())
	}) {
		t.Fatalf("observed %+v", v)
	}
	w.turn()
	w.mustBe(t, "more", "b", Safe, "")
	if m.Snapshot != cluster.SnapshotValid || m.Marker.Witness != cluster.Some(at) {
		t.Errorf("mirror %+v, marker %+v", m, m.Marker)
	}
}

func TestWalksAreAskedForAgain(t *testing.T) {
	p := Policy{Include: []Match{{Name: "*"}}, Interval: time.Second}
	pos := cluster.Position{Restart: 0x100, Confirmed: 0x200, CatalogXmin: 700}
	s := cluster.Slot{Name: "app", Kind: cluster.Logical, Restart: cluster.Some(pos.Restart), Confirmed: cluster.Some(pos.Confirmed), CatalogXmin: cluster.Some(pos.CatalogXmin)}
	moved := pos
	moved.Restart--
	for _, c := range []struct {
		name   string
		last   Walk
		files  map[cluster.LSN][]byte
		asked  bool
		resume string
	}{
		{name: "never asked", asked: true},
		{name: "the file is there", files: map[cluster.LSN][]byte{pos.Restart: {1}}},
		{name: "asked just now", last: Walk{Position: pos, At: epochZero}},
		{name: "asked long ago", last: Walk{Position: pos, At: epochZero.Add(-time.Second)}, asked: true},
		{name: "asked for another restart_lsn", last: Walk{Position: moved, At: epochZero, Resume: "r"}, asked: true},
		{name: "proven without a file", last: Walk{Position: pos, At: epochZero.Add(-time.Hour), Way: "phases"}},
		{name: "proven by a file that did not come", last: Walk{Position: pos, At: epochZero.Add(-time.Hour), Way: laterFile}, asked: true},
		{name: "not ended", last: Walk{Position: pos, At: epochZero, Resume: "r"}, asked: true, resume: "r"},
	} {
		m := Memory{Slots: map[string]SlotNote{"app": {Walk: c.last}}}
		want := WantWalks(epochZero, p, m, []cluster.Slot{s}, c.files)
		if (len(want) == 1) != c.asked || c.asked && want[0] != (WalkWanted{Slot: "app", Position: pos, Resume: c.resume}) {
			t.Errorf("%s: %+v", c.name, want)
		}
	}
}

// For a slot that the server's own workers keep on every standby nothing is read
// from the primary; for one that any standby has from us it is.
func TestNothingIsReadForWhatTheServerKeepsEverywhere(t *testing.T) {
	p := Policy{Include: []Match{{Name: "*"}}, Interval: time.Second}
	for _, tc := range []struct {
		name     string
		failover bool
		workers  []string
		asked    bool
	}{
		{"no worker", true, nil, true},
		{"a worker on one of two", true, []string{"b"}, true},
		{"a worker on each", true, []string{"b", "c"}, false},
		{"a worker on the primary only", true, []string{"a"}, true},
		{"workers, and no flag", false, []string{"b", "c"}, true},
	} {
		m := Memory{Primary: "a", Standbys: map[string]NodeNote{"a": {}, "b": {}, "c": {}}}
		for _, name := range tc.workers {
			m.Standbys[name] = NodeNote{SyncSlots: true}
		}
		slots := []cluster.Slot{{Name: "app", Kind: cluster.Logical, Failover: tc.failover,
			Restart: cluster.Some(cluster.LSN(0x100)), Confirmed: cluster.Some(cluster.LSN(0x200)), CatalogXmin: cluster.Some(cluster.XID(700))}}
		if files, walks := WantSnapshots(p, m, slots), WantWalks(epochZero, p, m, slots, nil); (len(files) == 1) != tc.asked || (len(walks) == 1) != tc.asked {
			t.Errorf("%s: files %v, walks %v", tc.name, files, walks)
		}
	}
	alone := Memory{Primary: "a", Standbys: map[string]NodeNote{"a": {SyncSlots: true}}}
	if alone.serverAlone(cluster.Slot{Failover: true}) {
		t.Error("without a standby no worker keeps anything")
	}
}

func TestWalkOfAnotherIncarnationSaysNothing(t *testing.T) {
	p := Policy{Include: []Match{{Name: "*"}}, Interval: time.Second}
	made := func(inode uint64) cluster.Incarnation {
		return cluster.Incarnation{Inode: inode, Birth: cluster.Some(epochZero)}
	}
	s := cluster.Slot{Name: "app", Kind: cluster.Logical, Incarnation: made(2),
		Restart: cluster.Some(cluster.LSN(0x100)), Confirmed: cluster.Some(cluster.LSN(0x200)), CatalogXmin: cluster.Some(cluster.XID(700))}
	at, _ := s.Position()
	for inode, asked := range map[uint64]bool{2: false, 3: true} {
		m := Memory{Slots: map[string]SlotNote{"app": {Incarnation: made(inode), Walk: Walk{Position: at, At: epochZero}}}}
		if want := WantWalks(epochZero, p, m, []cluster.Slot{s}, nil); (len(want) == 1) != asked {
			t.Errorf("known by inode %d: %+v", inode, want)
		}
	}
}
