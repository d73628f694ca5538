package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/primary"
	"github.com/slotkeeper/slotkeeper/standby"
)

const walk = 64 << 20

// advance moves the slot past everything. A running-xacts record, which a
// checkpoint writes, is what lets its restart_lsn move.
func (p *pair) advance(name string) cluster.Slot {
	p.t.Helper()
	for range 2 {
		ok(p.t, p.a.Exec(p.ctx, "CHECKPOINT"))
		ok(p.t, p.a.Exec(p.ctx, "SELECT count(*) FROM pg_logical_slot_get_changes('"+name+"', NULL, NULL)"))
	}
	return p.slot(p.as, name)
}

// change is a slot of the primary as a change for the standby, replayed there.
func (p *pair) change(s cluster.Slot) cluster.Change {
	p.t.Helper()
	at, good := s.Position()
	if !good {
		p.t.Fatalf("slot %q has no position: %+v", s.Name, s)
	}
	files, err := primary.Snapshots(p.ctx, p.as, []cluster.LSN{at.Restart, at.Restart})
	ok(p.t, err)
	ok(p.t, p.a.Exec(p.ctx, "SELECT pg_switch_wal()"))
	ok(p.t, p.b.WaitReplay(p.ctx, at.Confirmed))
	c := cluster.Change{
		Name: s.Name, Plugin: s.Plugin, DatabaseOID: s.DatabaseOID, TwoPhase: s.TwoPhase, TwoPhaseAt: s.TwoPhaseAt,
		Position: at, Source: s.Incarnation,
	}
	if file, there := files[at.Restart]; there {
		c.Snapshot = cluster.Some(file)
	}
	return c
}

func (p *pair) hold(slots ...cluster.Slot) {
	p.t.Helper()
	var wants []cluster.Want
	for _, s := range slots {
		wants = append(wants, cluster.Want{CatalogXmin: s.CatalogXmin.V, Slot: s.Name, Source: s.Incarnation})
	}
	for _, s := range []*postgres.Session{p.as, p.bs} {
		all, err := s.Hold(p.ctx, p.fence, 1, wants, cluster.None[cluster.LSN]())
		ok(p.t, err)
		if len(all) != len(wants) {
			p.t.Fatalf("holding %d slots gave %+v", len(wants), all)
		}
		for i, o := range all {
			coded(p.t, o, cluster.CodeHeld)
			if o.Name != wants[i].Slot || !o.Mirror.OK || !o.Mirror.V.CatalogXmin.NotAfter(wants[i].CatalogXmin) {
				p.t.Errorf("outcome %d is %+v, want the hold of %s at %s or before", i, o, wants[i].Slot, wants[i].CatalogXmin)
			}
		}
	}
}

func (p *pair) logical(names ...string) {
	p.t.Helper()
	for _, name := range names {
		ok(p.t, p.a.Exec(p.ctx, "SELECT pg_create_logical_replication_slot('"+name+"', 'test_decoding')"))
	}
}

func TestReadOfAPair(t *testing.T) {
	p := newPair(t)
	p.logical("s1")
	a, b := p.read(p.as), p.read(p.bs)
	system, err := primary.IdentifySystem(p.ctx, p.as)
	ok(t, err)
	if a.Node.SystemID != system.SystemID || b.Node.SystemID != system.SystemID || a.Node.Timeline != system.Timeline || b.Node.Timeline != 1 {
		t.Errorf("system %+v, a %+v, b %+v: want one system on timeline 1", system, a.Node, b.Node)
	}
	if a.Node.InRecovery || !b.Node.InRecovery {
		t.Errorf("in recovery: a %v, b %v", a.Node.InRecovery, b.Node.InRecovery)
	}
	if !a.Node.Insert.OK || a.Node.Replay.OK || b.Node.Insert.OK || !b.Node.Replay.OK {
		t.Errorf("positions of a %+v, of b %+v: a primary has insert, a standby replay", a.Node, b.Node)
	}
	if a.Node.ServerVersion/10000 < 13 || a.Node.Protocol != postgres.Protocol || a.Node.Script == "" || a.Node.WalLevel != "logical" {
		t.Errorf("a is %+v", a.Node)
	}
	if got := b.Node.PrimarySlotName; got != p.b.SlotName() {
		t.Errorf("primary_slot_name %q, want %q", got, p.b.SlotName())
	}
	if d := cmp.Diff(cluster.Some(p.fence), a.Node.Fence); d != "" || !a.Node.Heartbeat.OK {
		t.Errorf("the fence, heartbeat %v: %s", a.Node.Heartbeat, d)
	}
	if len(a.Walsenders) != 1 || a.Walsenders[0].ApplicationName != "b" || a.Walsenders[0].SlotName != p.b.SlotName() ||
		a.Walsenders[0].State != "streaming" || !a.Walsenders[0].Sent.OK {
		t.Errorf("walsenders %+v, want b's with its slot", a.Walsenders)
	}
	s := p.slot(p.as, "s1")
	if _, good := s.Position(); !good || s.Plugin != "test_decoding" || s.Database != "postgres" || s.DatabaseOID == 0 ||
		s.Incarnation.Inode == 0 || !s.WALok || !s.Saved || s.Marker != nil || s.ActivePID != 0 || s.Invalidated != "" {
		t.Errorf("slot %+v", s)
	}
	if phys := p.slot(p.as, p.b.SlotName()); phys.Kind != cluster.Physical || phys.Database != "" || phys.ActivePID == 0 || phys.Confirmed.OK {
		t.Errorf("slot %+v", phys)
	}
	if len(b.Slots) != 0 {
		t.Errorf("b has slots %+v", b.Slots)
	}
}

func TestMirrorsAreMadeMovedAndDropped(t *testing.T) {
	p := newPair(t)
	p.logical("s2", "s1")
	s1, s2 := p.advance("s1"), p.advance("s2")
	p.hold(s2, s1)

	marked, err := primary.Mark(p.ctx, p.as, p.fence, []string{"s2", "s1"}, []cluster.Incarnation{s2.Incarnation, s1.Incarnation})
	ok(t, err)
	if len(marked) != 2 || marked[0].Name != "s2" || marked[1].Name != "s1" {
		t.Fatalf("marked %+v", marked)
	}
	for _, o := range marked {
		coded(t, o, cluster.CodeMarked)
	}
	if m := p.slot(p.as, "s1").Marker; m == nil || m.Kind != cluster.MarkOriginal || m.Scope != "shop" {
		t.Errorf("marker of the original %+v", m)
	}
	wrong, err := primary.Mark(p.ctx, p.as, p.fence, []string{"s1"}, []cluster.Incarnation{s2.Incarnation})
	coded(t, one(t, wrong, err), cluster.CodeRetry)

	// The order of the rows is that of the changes.
	changes := []cluster.Change{p.change(s2), p.change(s1)}
	made, err := standby.Apply(p.ctx, p.bs, p.fence, changes, walk)
	ok(t, err)
	if len(made) != 2 || made[0].Name != "s2" || made[1].Name != "s1" {
		t.Fatalf("made %+v", made)
	}
	for i, o := range made {
		coded(t, o, cluster.CodeMade)
		if o.Mirror != cluster.Some(changes[i].Position) || o.Way == "" || !o.ProvenAt.OK || o.Node != "b" {
			t.Errorf("outcome %+v, want a proof and position %+v", o, changes[i].Position)
		}
	}
	mirror := p.slot(p.bs, "s1")
	at, _ := mirror.Position()
	if at != changes[1].Position || mirror.Marker == nil || mirror.Marker.Kind != cluster.MarkMirror ||
		mirror.Marker.Source != s1.Incarnation || mirror.Marker.Generation != 1 || mirror.Marker.Way == "" {
		t.Errorf("mirror %+v, marker %+v", mirror, mirror.Marker)
	}

	again, err := standby.Apply(p.ctx, p.bs, p.fence, changes[1:], walk)
	coded(t, one(t, again, err), cluster.CodeUnchanged)
	moved := p.change(p.advance("s1"))
	out, err := standby.Apply(p.ctx, p.bs, p.fence, []cluster.Change{moved}, walk)
	if o := one(t, out, err); o.Code != cluster.CodeMoved || o.Mirror.V != moved.Position {
		t.Errorf("outcome %+v, want moved to %+v", o, moved.Position)
	}
	back, err := standby.Apply(p.ctx, p.bs, p.fence, changes[1:], walk)
	coded(t, one(t, back, err), cluster.CodeBackward)

	stamped, err := p.bs.Stamp(p.ctx, p.fence, 2, []string{"s1"})
	ok(t, err)
	if len(stamped) != 1 || p.slot(p.bs, "s1").Marker.Generation != 2 {
		t.Errorf("stamped %+v, marker %+v", stamped, p.slot(p.bs, "s1").Marker)
	}
	dropped, err := p.bs.Drop(p.ctx, p.fence, []string{"s1", "absent"})
	ok(t, err)
	if len(dropped) != 2 || dropped[0].Code != cluster.CodeDropped || dropped[1].Code != cluster.CodeUnchanged {
		t.Errorf("dropped %+v", dropped)
	}
}

func TestEmptyArguments(t *testing.T) {
	p := newPair(t)
	for _, s := range []*postgres.Session{p.as, p.bs} {
		for range 2 {
			all, err := s.Hold(p.ctx, p.fence, 1, nil, cluster.None[cluster.LSN]())
			o := one(t, all, err)
			if o.Name != cluster.HoldName {
				t.Errorf("holding nothing gave %+v, want the hold's own row", o)
			}
		}
		for name, call := range map[string]func() ([]cluster.Outcome, error){
			"drop":  func() ([]cluster.Outcome, error) { return s.Drop(p.ctx, p.fence, nil) },
			"stamp": func() ([]cluster.Outcome, error) { return s.Stamp(p.ctx, p.fence, 1, nil) },
			"apply": func() ([]cluster.Outcome, error) { return standby.Apply(p.ctx, s, p.fence, nil, walk) },
		} {
			if all, err := call(); err != nil || len(all) != 0 {
				t.Errorf("%s of nothing on %s gave %+v, %v", name, s.Node(), all, err)
			}
		}
	}
	if all, err := primary.Mark(p.ctx, p.as, p.fence, nil, nil); err != nil || len(all) != 0 {
		t.Errorf("mark of nothing gave %+v, %v", all, err)
	}
	if files, err := primary.Snapshots(p.ctx, p.as, []cluster.LSN{0x28}); err != nil || len(files) != 0 {
		t.Errorf("a position without a file gave %v, %v", files, err)
	}
}

func TestWALHold(t *testing.T) {
	p := newPair(t)
	p.logical("s1")
	s := p.slot(p.as, "s1")
	p.hold(s)
	want := cluster.Want{CatalogXmin: s.CatalogXmin.V} // a keep
	all, err := p.bs.Hold(p.ctx, p.fence, 1, []cluster.Want{want}, s.Restart)
	ok(t, err)
	for _, o := range all {
		coded(t, o, cluster.CodeHeld)
	}
	if got := p.slot(p.bs, cluster.WALHoldName); got.Restart != s.Restart || got.Marker == nil || got.Marker.Kind != cluster.MarkWAL {
		t.Errorf("%s is %+v, want restart_lsn %s", cluster.WALHoldName, got, s.Restart.V)
	}
	if _, err := p.bs.Hold(p.ctx, p.fence, 1, []cluster.Want{want}, cluster.Some(cluster.LSN(0))); err != nil {
		t.Fatal(err)
	}
	for _, got := range p.read(p.bs).Slots {
		if got.Name == cluster.WALHoldName {
			t.Errorf("%s is still there: %+v", cluster.WALHoldName, got)
		}
	}
	if _, err := p.as.Hold(p.ctx, p.fence, 1, nil, s.Restart); err == nil {
		t.Error("a WAL hold on a primary is accepted")
	}
}

func TestFences(t *testing.T) {
	p := newPair(t)
	older := p.fence
	older.Epoch--
	all, err := p.bs.Drop(p.ctx, older, []string{"s1"})
	coded(t, one(t, all, err), cluster.CodeFenced)
	for _, tc := range []struct {
		name string
		call func() (string, error)
		want string
	}{
		{"an older epoch", func() (string, error) { return p.bs.RaiseFence(p.ctx, older) }, "fenced"},
		{"the same", func() (string, error) { return p.bs.RaiseFence(p.ctx, p.fence) }, "same"},
		{"removed by an older epoch", func() (string, error) { return p.bs.RemoveFence(p.ctx, older) }, "fenced"},
		{"removed", func() (string, error) { return p.bs.RemoveFence(p.ctx, p.fence) }, "removed"},
		{"removed again", func() (string, error) { return p.bs.RemoveFence(p.ctx, p.fence) }, "absent"},
	} {
		if got, err := tc.call(); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
	if f := p.read(p.bs).Node.Fence; f.OK {
		t.Errorf("the fence is still %+v", f.V)
	}
}

// The walk from a running-xacts record with an open transaction, over some
// megabytes, to one where nothing runs: many calls give what one call gives.
func TestConsistentPoint(t *testing.T) {
	p := newPair(t)
	ok(t, p.a.Exec(p.ctx, "CREATE TABLE t (v text)"))
	open, err := p.a.Connect(p.ctx, "", "")
	ok(t, err)
	defer open.Close(p.ctx)
	_, err = open.Exec(p.ctx, "BEGIN; INSERT INTO t VALUES ('open')")
	ok(t, err)
	ok(t, p.a.Exec(p.ctx, "CHECKPOINT"))
	var redo string
	ok(t, p.a.QueryRow(p.ctx, "SELECT redo_lsn::text FROM pg_control_checkpoint()").Scan(&redo))
	ok(t, p.a.Exec(p.ctx, "INSERT INTO t SELECT repeat('x', 500) FROM generate_series(1, 6000)"))
	_, err = open.Exec(p.ctx, "COMMIT")
	ok(t, err)
	ok(t, p.a.Exec(p.ctx, "CHECKPOINT; INSERT INTO t VALUES ('last')"))
	var at cluster.Position
	at.Restart, err = cluster.ParseLSN(redo)
	ok(t, err)
	at.Confirmed, err = p.a.CurrentLSN(p.ctx)
	ok(t, err)
	ok(t, p.b.WaitReplay(p.ctx, at.Confirmed))

	whole, err := primary.ConsistentPoint(p.ctx, p.as, at, walk)
	ok(t, err)
	if whole.Way != "nothing_running" || whole.ProvenAt.V < at.Restart+2<<20 {
		t.Fatalf("proof %+v from %s, want nothing_running some megabytes on", whole, at.Restart)
	}
	const little = 128 << 10
	if got, err := primary.ConsistentPoint(p.ctx, p.as, at, little); err != nil || got != whole {
		t.Errorf("in little steps on the primary %+v, %v, want %+v", got, err, whole)
	}
	if got, err := standby.ConsistentPoint(p.ctx, p.bs, at, little); err != nil || got != whole {
		t.Errorf("in little steps on the standby %+v, %v, want %+v", got, err, whole)
	}
	at.Confirmed = whole.ProvenAt.V
	if got, err := standby.ConsistentPoint(p.ctx, p.bs, at, little); err != nil || got != (postgres.Proof{}) {
		t.Errorf("up to the proof, itself excluded, %+v, %v; want none", got, err)
	}
	if _, err := primary.ConsistentPoint(p.ctx, p.as, cluster.Position{}, walk); err == nil {
		t.Error("a position of zeros is accepted")
	}
}

func TestHistoryAfterPromotion(t *testing.T) {
	p := newPair(t)
	if forks, err := primary.TimelineHistory(p.ctx, p.as, 1); err != nil || len(forks) != 0 {
		t.Errorf("the history of timeline 1 is %v, %v; want none", forks, err)
	}
	ok(t, p.a.StopFast(p.ctx))
	ok(t, p.b.Promote(p.ctx))
	forks, err := primary.TimelineHistory(p.ctx, p.bs, 2)
	ok(t, err)
	at, err := p.b.Fork(p.ctx)
	ok(t, err)
	want := []cluster.Fork{{Timeline: 1, LSN: at}}
	if d := cmp.Diff(want, forks); d != "" {
		t.Errorf("by the replication protocol: %s", d)
	}
	node := p.read(p.bs).Node
	if d := cmp.Diff(want, node.History); d != "" || node.Timeline != 2 || node.InRecovery {
		t.Errorf("node() says timeline %d, in recovery %v, history: %s", node.Timeline, node.InRecovery, d)
	}
	if _, err := primary.TimelineHistory(p.ctx, p.bs, 9); err == nil {
		t.Error("the history of a timeline that is not there gave no error")
	}
	if _, err := p.as.Read(p.ctx); postgres.Classify(err) != postgres.Unreachable {
		t.Errorf("a stopped node gave %v", err)
	}
}
