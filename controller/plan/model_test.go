package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// world is a small model of a cluster and of what the extension does in it:
// enough to see whether a plan, carried out, gives what it promises. Rows are
// modelled by one number per server: catalog rows of before `removed` are gone.
type world struct {
	now     time.Time
	policy  Policy
	servers map[string]*server
	memory  Memory
	cycle   uint64
	births  uint64
	highest map[string]cluster.LSN    // per slot: the highest confirmed_flush_lsn on this branch of history
	born    map[time.Time]cluster.XID // per slot directory: from where its first decoder needed rows
	nextXID cluster.XID

	refuse   func(Step) string // a step that the network eats: its error
	lose     func(Step) bool   // the step is made, its answer lost
	behind   func(Step)        // what happens between the read and this step
	provable func(cluster.Change) bool
	walked   int                        // how many walks the primary was asked for
	fail     map[string]Fact[NodeRead]  // reads that fail
	answer   map[string]cluster.Outcome // what apply says of every change on a node

	plan       Plan
	steps      []StepOutcome
	verdicts   []Verdict
	conditions []Condition
}

type server struct {
	node    cluster.Node
	slots   map[string]*cluster.Slot
	up      bool
	removed cluster.XID

	walsenders []cluster.Walsender
	vacuums    []vacuum // of its branch, in WAL order
	files      map[cluster.LSN]bool
	later      map[cluster.LSN]cluster.LSN // per restart_lsn: a file after it that proves it
}

type vacuum struct {
	at      cluster.LSN
	removed cluster.XID
}

const (
	scope  = "shop"
	store  = "store-1"
	system = cluster.SystemID(7000000000000000001)
)

var epochZero = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newWorld(standbys ...string) *world {
	w := &world{
		now:     epochZero,
		policy:  Policy{Scope: scope, Owner: "ctl", Include: []Match{{Name: "*"}}, Interval: time.Second, RaiseEvery: 5 * time.Second, MaxHoldAge: time.Hour, LeaseTTL: 10 * time.Second},
		servers: map[string]*server{},
		memory:  Memory{Epoch: 10, Store: store},
		nextXID: 800,
		born:    map[time.Time]cluster.XID{},
		highest: map[string]cluster.LSN{},
	}
	w.servers["a"] = newServer(false)
	for _, name := range standbys {
		w.servers[name] = newServer(true)
	}
	return w
}

func newServer(recovery bool) *server {
	s := &server{up: true, removed: 700, slots: map[string]*cluster.Slot{}, files: map[cluster.LSN]bool{}, later: map[cluster.LSN]cluster.LSN{}}
	s.node = cluster.Node{
		SystemID: system, Timeline: 1, InRecovery: recovery, WalLevel: "logical", MaxSlots: 20, Feedback: true,
		Started: epochZero.Add(-time.Hour), Library: "1.0", Script: "1.0", Protocol: 1, ServerVersion: 150018,
	}
	if recovery {
		s.node.Receive, s.node.Replay = cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x30000))
	} else {
		s.node.Insert, s.node.Flush = cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x30000))
	}
	return s
}

func (w *world) primary() *server {
	var best *server
	for _, name := range slices.Sorted(maps.Keys(w.servers)) {
		s := w.servers[name]
		if s.up && !s.node.InRecovery && (best == nil || s.node.Timeline > best.node.Timeline) {
			best = s
		}
	}
	return best
}

// incarnation gives a directory that nobody had before; inodes are reused.
func (w *world) incarnation() cluster.Incarnation {
	w.births++
	return cluster.Incarnation{Inode: 100 + w.births%3, Birth: cluster.Some(epochZero.Add(time.Duration(w.births) * time.Microsecond))}
}

func (w *world) createSlot(name string) *cluster.Slot {
	p := w.primary()
	x := w.nextXID
	if held := p.oldest(); held.OK {
		x = held.V // a newborn slot inherits what the others pin
	}
	end := p.node.Insert.V
	s := &cluster.Slot{
		Name: name, Kind: cluster.Logical, Plugin: "pgoutput", Database: "shop", DatabaseOID: 5, TwoPhaseAt: cluster.None[cluster.LSN](),
		Restart: cluster.Some(end - 0x100), Confirmed: cluster.Some(end), CatalogXmin: cluster.Some(x), EffectiveCatalogXmin: cluster.Some(x),
		Incarnation: w.incarnation(), WALok: true, Snapshot: cluster.SnapshotValid, Saved: true,
	}
	p.slots[name] = s
	p.files[s.Restart.V] = true
	w.born[s.Incarnation.Birth.V], w.highest[name] = w.nextXID, end
	return s
}

// write makes WAL; standbys replay it all unless lag says otherwise.
func (w *world) write(bytes cluster.LSN) {
	p := w.primary()
	p.node.Insert = cluster.Some(p.node.Insert.V + bytes)
	p.node.Flush = p.node.Insert
	w.nextXID++
}

func (w *world) replay(name string, upto cluster.LSN) {
	s := w.servers[name]
	if !s.node.InRecovery || upto <= s.node.Replay.V {
		return
	}
	s.node.Replay, s.node.Receive = cluster.Some(upto), cluster.Some(max(upto, s.node.Receive.V))
	if p := w.primary(); p != nil && p.node.Timeline == s.node.Timeline {
		for _, v := range p.vacuums {
			if v.at <= upto && s.removed.Precedes(v.removed) {
				s.removed = v.removed
			}
		}
		for _, slot := range s.slots { // a conflict of recovery
			if slot.Synced && !s.removed.NotAfter(slot.CatalogXmin.V) {
				slot.Invalidated = "rows_removed"
			}
		}
	}
}

func (w *world) replayAll() {
	p := w.primary()
	for name, s := range w.servers {
		if s.up && s.node.InRecovery && s.node.Timeline == p.node.Timeline {
			w.replay(name, p.node.Insert.V)
		}
	}
}

// confirm moves a slot as a consumer does.
func (w *world) confirm(name string, restart, confirmed cluster.LSN, x cluster.XID) {
	p := w.primary()
	s := p.slots[name]
	s.Restart, s.Confirmed = cluster.Some(restart), cluster.Some(confirmed)
	s.CatalogXmin, s.EffectiveCatalogXmin = cluster.Some(x), cluster.Some(x)
	p.files[restart] = true
	w.highest[name] = max(w.highest[name], confirmed)
}

// catchUp confirms all there is.
func (w *world) catchUp(name string) {
	w.write(0x1000)
	end := w.primary().node.Insert.V
	w.confirm(name, end-0x100, end, w.nextXID)
}

func (s *server) oldest() cluster.Opt[cluster.XID] {
	var xs []cluster.XID
	for _, slot := range s.slots {
		xs = append(xs, slot.EffectiveCatalogXmin.Or(0))
	}
	return cluster.OldestXID(xs...)
}

// vacuum removes catalog rows that no slot of the primary pins.
func (w *world) vacuum() {
	p := w.primary()
	upto := p.oldest().Or(w.nextXID)
	if p.removed.Precedes(upto) {
		p.removed = upto
	}
	p.node.Insert = cluster.Some(p.node.Insert.V + 0x10)
	p.vacuums = append(p.vacuums, vacuum{p.node.Insert.V, p.removed})
}

// promote ends the old primary and makes a standby the new one.
func (w *world) promote(name string) {
	old := w.primary()
	if old != nil {
		old.up = false
	}
	s := w.servers[name]
	fork := s.node.Replay.V
	s.node.History = append(slices.Clone(s.node.History), cluster.Fork{Timeline: s.node.Timeline, LSN: fork})
	s.node.InRecovery, s.node.Timeline = false, s.node.Timeline+1
	s.node.Insert, s.node.Flush = cluster.Some(fork+0x100), cluster.Some(fork+0x100)
	s.node.Receive, s.node.Replay = cluster.None[cluster.LSN](), cluster.None[cluster.LSN]()
	s.vacuums = nil
	for slot, f := range w.highest {
		w.highest[slot] = min(f, fork)
	}
	for _, slot := range s.slots {
		if slot.Marker != nil {
			w.born[slot.Incarnation.Birth.V] = w.born[slot.Marker.Source.Birth.V]
		}
	}
	for n, other := range w.servers {
		if n != name && other.up && other.node.InRecovery && other.node.Replay.V <= fork {
			other.node.Timeline, other.node.History = s.node.Timeline, s.node.History
		}
	}
}

// walk answers what plan asks of the primary's own WAL.
func (w *world) walk(o *Observation, s *server) {
	files := map[cluster.LSN][]byte{}
	for _, slot := range s.slots {
		if bytes, ok := o.Snapshots[slot.Name]; ok {
			files[slot.Restart.V] = bytes
		}
	}
	o.Walks = map[string]Walk{}
	for _, want := range WantWalks(w.now, w.policy, w.memory, s.read().Slots, files) {
		w.walked++
		walk := Walk{Position: want.Position, At: w.now}
		if at, ok := s.later[want.Position.Restart]; ok {
			walk.Way, walk.FileAt, walk.File = laterFile, cluster.Some(at), cluster.Some([]byte("snapshot at "+at.String()))
		}
		o.Walks[want.Slot] = walk
	}
}

// observe reads all that is up.
func (w *world) observe() Observation {
	w.cycle++
	o := Observation{Begun: w.now, Cycle: w.cycle, Nodes: map[string]Fact[NodeRead]{}, Snapshots: map[string][]byte{}}
	o.Topology = Fact[cluster.Topology]{At: w.now}
	for _, name := range slices.Sorted(maps.Keys(w.servers)) {
		o.Topology.Value.Members = append(o.Topology.Value.Members, cluster.Member{Name: name})
		s := w.servers[name]
		if bad, ok := w.fail[name]; ok {
			o.Nodes[name] = bad
			continue
		}
		if !s.up {
			o.Nodes[name] = Fact[NodeRead]{At: w.now, Err: "connection refused", Reason: ReasonUnreachable}
			continue
		}
		o.Nodes[name] = Fact[NodeRead]{At: w.now, Value: s.read()}
	}
	if at := FindPrimary(o, w.memory); at != "" {
		want := WantSnapshots(w.policy, w.memory, o.Nodes[at].Value.Slots)
		for _, slot := range o.Nodes[at].Value.Slots {
			if slices.Contains(want, slot.Restart.Or(0)) && w.servers[at].files[slot.Restart.V] {
				o.Snapshots[slot.Name] = []byte("snapshot at " + slot.Restart.V.String())
			}
		}
		w.walk(&o, w.servers[at])
	}
	return o
}

func (s *server) read() NodeRead {
	r := NodeRead{Node: s.node, Walsenders: s.walsenders}
	r.Node.UsedSlots = len(s.slots)
	for _, name := range slices.Sorted(maps.Keys(s.slots)) {
		slot := *s.slots[name]
		if slot.Marker != nil {
			m := *slot.Marker
			slot.Marker = &m
		}
		r.Slots = append(r.Slots, slot)
	}
	return r
}

// turn is one cycle: observe, decide, apply, settle.
func (w *world) turn() {
	o := w.observe()
	w.plan = Decide(w.now, w.policy, o, w.memory)
	w.steps = w.carryOut(w.plan)
	w.memory, w.verdicts, w.conditions = Settle(w.now, w.policy, o, w.plan, w.steps)
	w.now = w.now.Add(20 * time.Millisecond)
}

func (w *world) turns(n int) {
	for range n {
		w.turn()
	}
}

func (w *world) carryOut(pl Plan) []StepOutcome {
	done := map[string]StepOutcome{}
	var all []StepOutcome
	for _, step := range pl.Steps {
		out := StepOutcome{StepID: step.ID}
		ready, why := Ready(step, done)
		switch {
		case why != "":
			out.Skipped = why
		case w.refuse != nil && w.refuse(step) != "":
			out.Err = w.refuse(step)
		default:
			if w.behind != nil {
				w.behind(step)
			}
			out.Outcomes = w.do(ready)
			if w.lose != nil && w.lose(step) {
				out.Outcomes, out.Err = nil, "timeout"
			}
		}
		done[step.ID] = out
		all = append(all, out)
	}
	return all
}

// needs is from where on a mirror needs catalog rows: its catalog_xmin, or what
// its slot began with, which inherits an older one that says nothing.
func (w *world) needs(mirror *cluster.Slot) cluster.XID {
	x, born := mirror.CatalogXmin.V, w.born[mirror.Marker.Source.Birth.V]
	if x.Precedes(born) {
		return born
	}
	return x
}

func (w *world) verdict(slot, standby string) Verdict {
	for _, v := range w.verdicts {
		if v.Slot == slot && v.Standby == standby {
			return v
		}
	}
	return Verdict{}
}

func (w *world) has(code string) bool {
	return slices.ContainsFunc(w.conditions, func(c Condition) bool { return c.Code == code })
}
