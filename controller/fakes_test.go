package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// The fakes stand for faults that no real server gives at a chosen moment: a
// lease that ends between two steps, a node that answers nothing for ever.

type fakeSource []string

func (s fakeSource) Topology(context.Context) (cluster.Topology, error) {
	var t cluster.Topology
	for _, name := range s {
		t.Members = append(t.Members, cluster.Member{Name: name, Conninfo: "host=" + name})
	}
	return t, nil
}

type fakeNode struct {
	mu    sync.Mutex
	read  plan.NodeRead
	err   error
	hang  bool
	stuck func(call string) bool // calls that end with their context only
	steps []plan.Step
	walks int // how often walks were asked for
	do    func(plan.Step) ([]cluster.Outcome, error)
	watch func(context.Context, string, cluster.Opt[cluster.LSN]) (cluster.Watched, error) // nil: a server without the procedure
	reads int
}

func (n *fakeNode) Read(ctx context.Context) (plan.NodeRead, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	if n.stuck != nil {
		n.stuck("read")
	}
	if n.hang {
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return plan.NodeRead{}, ctx.Err()
	}
	read := n.read
	read.Slots = slices.Clone(read.Slots)
	return read, n.err
}

// hangs waits until ctx ends where the call is stuck.
func (n *fakeNode) hangs(ctx context.Context, call string) error {
	n.mu.Lock()
	stuck := n.stuck
	n.mu.Unlock()
	if stuck == nil || !stuck(call) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (n *fakeNode) Snapshots(ctx context.Context, _ []cluster.LSN) (map[cluster.LSN][]byte, error) {
	if err := n.hangs(ctx, "snapshots"); err != nil {
		return nil, err
	}
	return map[cluster.LSN][]byte{}, nil
}

func (n *fakeNode) Walks(ctx context.Context, _ []plan.WalkWanted, _ int64) (map[string]plan.Walk, error) {
	if err := n.hangs(ctx, "walks"); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.walks++
	return nil, errors.New("the server closed the connection")
}

func (n *fakeNode) Do(ctx context.Context, s plan.Step) ([]cluster.Outcome, error) {
	if err := n.hangs(ctx, string(s.Kind)); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.steps = append(n.steps, s)
	do := n.do
	n.mu.Unlock()
	if do != nil {
		return do(s)
	}
	return nil, nil
}

func (n *fakeNode) Watch(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error) {
	n.mu.Lock()
	watch := n.watch
	n.mu.Unlock()
	if err := n.hangs(ctx, "watch"); err != nil {
		return cluster.Watched{Token: since}, err
	}
	if watch == nil {
		return cluster.Watched{Token: since}, errors.New("procedure slotkeeper.wait_for_change does not exist")
	}
	return watch(ctx, since, target)
}

func (n *fakeNode) Close() {}

func (n *fakeNode) kinds() []plan.StepKind {
	n.mu.Lock()
	defer n.mu.Unlock()
	var kinds []plan.StepKind
	for _, s := range n.steps {
		kinds = append(kinds, s.Kind)
	}
	return kinds
}

type fakeTerm struct {
	mu     sync.Mutex
	valid  bool
	ctx    context.Context
	parts  map[string][]byte
	writes []string
	space  Space
	fail   error
	stuck  bool // Save ends with its context only
	bug    func(call string)
}

func newFakeTerm(t *testing.T) *fakeTerm {
	return &fakeTerm{valid: true, ctx: t.Context(), parts: map[string][]byte{}}
}

func (f *fakeTerm) Epoch() cluster.Epoch     { return 7 }
func (f *fakeTerm) Store() string            { return "store" }
func (f *fakeTerm) Context() context.Context { return f.ctx }

func (f *fakeTerm) Valid(time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.valid
}

func (f *fakeTerm) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.valid = false
}

func (f *fakeTerm) Load(context.Context) (map[string][]byte, error) {
	if f.bug != nil {
		f.bug("load")
	}
	return f.parts, nil
}

func (f *fakeTerm) Save(ctx context.Context, parts map[string][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.bug != nil {
		f.bug("save")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	if f.stuck {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return ctx.Err()
	}
	for part, value := range parts {
		f.parts[part] = value
		f.writes = append(f.writes, part)
	}
	return nil
}

func (f *fakeTerm) Space(context.Context) (Space, error) {
	if f.bug != nil {
		f.bug("space")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.space, nil
}

func (f *fakeTerm) Resign(context.Context) error { return nil }

const fakeSystem = cluster.SystemID(42)

func fakeServer(standby bool) plan.NodeRead {
	n := cluster.Node{
		SystemID: fakeSystem, Timeline: 1, InRecovery: standby, WalLevel: "logical", MaxSlots: 10,
		Protocol: 1, Library: "1.0", Script: "1.0", ServerVersion: 150000, Feedback: true,
	}
	if standby {
		n.Receive, n.Replay = cluster.Some(cluster.LSN(1000)), cluster.Some(cluster.LSN(1000))
	} else {
		n.Insert, n.Flush = cluster.Some(cluster.LSN(1000)), cluster.Some(cluster.LSN(1000))
	}
	return plan.NodeRead{Node: n}
}

func fakeSlot(name string) cluster.Slot {
	return cluster.Slot{
		Name: name, Kind: cluster.Logical, Plugin: "test_decoding", Database: "db", DatabaseOID: 5, WALok: true, Saved: true,
		Restart: cluster.Some(cluster.LSN(100)), Confirmed: cluster.Some(cluster.LSN(200)),
		CatalogXmin: cluster.Some(cluster.XID(700)), EffectiveCatalogXmin: cluster.Some(cluster.XID(700)),
		Snapshot: cluster.SnapshotValid, Incarnation: cluster.Incarnation{Inode: 9, Birth: cluster.Some(time.Unix(1, 0))},
	}
}

func fakeHold(node string) cluster.Slot {
	return cluster.Slot{
		Name: cluster.HoldName, Kind: cluster.Physical, Saved: true,
		CatalogXmin: cluster.Some(cluster.XID(700)), EffectiveCatalogXmin: cluster.Some(cluster.XID(700)),
		Marker: &cluster.Marker{
			Version: 1, Kind: cluster.MarkHold, Scope: "shop", Store: "store", SystemID: fakeSystem, Timeline: 1, Generation: 1, Way: node,
		},
	}
}

// fakeMirror is what an apply of this change leaves on a standby.
func fakeMirror(s cluster.Slot, at cluster.Position) cluster.Slot {
	s.Restart, s.Confirmed = cluster.Some(at.Restart), cluster.Some(at.Confirmed)
	s.CatalogXmin, s.EffectiveCatalogXmin = cluster.Some(at.CatalogXmin), cluster.Some(at.CatalogXmin)
	s.Marker = &cluster.Marker{
		Version: 1, Kind: cluster.MarkMirror, Scope: "shop", Store: "store", SystemID: fakeSystem, Timeline: 1, Generation: 1,
		Source: s.Incarnation, Way: "file",
	}
	return s
}

// obeys has a node hold, make and move mirrors as the extension does; then is
// called after each apply.
func (n *fakeNode) obeys(name string, then func()) {
	n.do = func(step plan.Step) ([]cluster.Outcome, error) {
		var rows []cluster.Outcome
		switch step.Kind {
		case plan.StepFence:
			return []cluster.Outcome{{Code: "raised"}}, nil
		case plan.StepHold:
			for _, want := range step.Wants {
				rows = append(rows, cluster.Outcome{Name: want.Slot, Code: cluster.CodeHeld})
			}
			hold := fakeHold(name)
			hold.Marker.Generation = step.Generation
			n.mu.Lock()
			n.read.Slots = append(slices.DeleteFunc(slices.Clone(n.read.Slots), func(s cluster.Slot) bool { return s.Name == hold.Name }), hold)
			n.mu.Unlock()
		case plan.StepApply:
			n.mu.Lock()
			for _, ch := range step.Changes {
				n.read.Slots = slices.DeleteFunc(slices.Clone(n.read.Slots), func(s cluster.Slot) bool { return s.Name == ch.Name })
				n.read.Slots = append(n.read.Slots, fakeMirror(fakeSlot(ch.Name), ch.Position))
				rows = append(rows, cluster.Outcome{Name: ch.Name, Code: cluster.CodeMoved, Mirror: cluster.Some(ch.Position)})
			}
			n.mu.Unlock()
			then()
		}
		return rows, nil
	}
}

// stage is a controller over fakes: primary a with one slot, standbys b and c.
type stage struct {
	c     *Controller
	nodes map[string]*fakeNode
	term  *fakeTerm
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{term: newFakeTerm(t), nodes: map[string]*fakeNode{
		"a": {read: fakeServer(false)}, "b": {read: fakeServer(true)}, "c": {read: fakeServer(true)},
	}}
	s.nodes["a"].read.Slots = []cluster.Slot{fakeSlot("cdc")}
	s.c = New(Config{
		Policy:   plan.Policy{Scope: "shop", Owner: "test", Include: []plan.Match{{Name: "*"}}, Interval: time.Second},
		Interval: time.Second, MinGap: time.Millisecond, ReadTimeout: 200 * time.Millisecond, CycleTimeout: 5 * time.Second,
	}, Deps{
		Source: fakeSource{"a", "b", "c"},
		Dial:   func(m cluster.Member) (Node, error) { return s.nodes[m.Name], nil },
		Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(s.c.Close)
	if err := s.c.Begin(t.Context(), s.term); err != nil {
		t.Fatal(err)
	}
	return s
}
