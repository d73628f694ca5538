package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// world is a small model of a cluster, of what the extension does in it, and of
// a controller that cycles: enough to see whether a plan, carried out, keeps what
// it promises. What it has of PostgreSQL:
//
//   - Catalog rows are one number per server: rows of before `removed` are gone.
//     VACUUM on the primary takes what no slot there pins; a standby loses the same
//     when it replays that.
//   - WAL is one number per server: what lies before `walFrom` is gone. A
//     checkpoint, on a standby a restartpoint, takes what no slot pins, and with a
//     limit (`keep`) also what slots pin: those are invalidated. Snapshot files of
//     before every restart_lsn go with it.
//   - A slot lives in memory and on disk. Where restart_lsn and catalog_xmin stand,
//     confirmed_flush_lsn moves in memory only until a checkpoint; a crash takes it
//     back. With a full disk nothing is saved.
//   - Transactions are intervals of WAL. Without its file at restart_lsn a decoder
//     becomes consistent where none is open, and nowhere else.
//   - A promotion ends a timeline where the standby has replayed to; a node that
//     joins again loses what lies behind that.
//   - Members take other names, or each other's; memory, ledger and topology know names only.
//   - Sessions of a server remember before which death catalog rows are of no use,
//     and live through its promotion: then they remove those rows, whatever slots
//     pin. Nothing of that is told by `removed`: these rows are one by one (`died`),
//     and those that died before `pruned` are gone. See model_session_test.go.
//
// decoder (model_decoder_test.go) says whether a consumer could go on from a
// slot: from these numbers alone, and never from what the controller, a marker
// or a verdict says. The extension's calls are in model_calls_test.go, model_hold_test.go and model_apply_test.go.
type world struct {
	now       time.Time
	policy    Policy
	servers   map[string]*server
	memory    Memory
	ledger    map[string]SlotNote // positions as the ledger has them
	written   time.Time
	reached   cluster.LSN // of the timeline reachedOn, as the ledger has it
	reachedOn cluster.Timeline
	cycle     uint64
	births    uint64
	moments   uint64
	nextXID   cluster.XID
	open      []span  // transactions, ended ones too
	died      []death // catalog rows, in the order of their transactions

	// Of slots by the birth of their directory: which slot it is or copies, from
	// where on that one's first decoder needed rows, and where it was placed.
	origin map[time.Time]uint64
	born   map[uint64]cluster.XID
	placed map[time.Time]place
	// highest confirmed_flush_lsn of each slot on each timeline.
	highest map[uint64]map[cluster.Timeline]cluster.LSN
	unheld  bool // somebody has had a hand on a hold since the primary was read last

	manager  *cluster.Manager // what Patroni says of itself, nil without it
	leader   string           // its leader key
	unknown  string           // why the topology cannot be read
	unlisted map[string]bool  // members that it does not name, as Patroni's whose key has run out
	denied   string           // why synchronized_standby_slots cannot be set

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
	disk    map[string]cluster.Slot // as they were saved
	up      bool
	paused  bool        // replay stands still
	full    bool        // nothing can be saved
	removed cluster.XID // catalog rows of before are gone
	pruned  cluster.XID // those that died before are gone too: sessions have removed them
	walFrom cluster.LSN // WAL of before is gone
	keep    cluster.LSN // max_slot_wal_keep_size, 0 for none

	walsenders []cluster.Walsender
	sessions   []*session
	held       holding  // what the hold's marker says of them
	vacuums    []vacuum // of its branch, in WAL order
	files      map[cluster.LSN]bool
	later      map[cluster.LSN]cluster.LSN // per restart_lsn: a file after it that proves it
	last       Fact[NodeRead]              // what was read of it last
}

type vacuum struct {
	at              cluster.LSN
	removed, pruned cluster.XID
}

// span is a transaction: from its beginning to its end, 0 while it is open.
type span struct{ from, to cluster.LSN }

// place is where a slot was put, and on which timeline.
type place struct {
	timeline cluster.Timeline
	at       cluster.LSN
}

const (
	scope  = "shop"
	store  = "store-1"
	system = cluster.SystemID(7000000000000000001)
)

var epochZero = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newWorld(standbys ...string) *world { return newWorldAt(800, standbys...) }

// newWorldAt begins with the transaction id that is given next.
func newWorldAt(next cluster.XID, standbys ...string) *world {
	w := &world{
		now:     epochZero,
		policy:  Policy{Scope: scope, Owner: "ctl", Include: []Match{{Name: "*"}}, Interval: time.Second, RaiseEvery: 5 * time.Second, MaxHoldAge: time.Hour, LeaseTTL: 10 * time.Second},
		servers: map[string]*server{},
		memory:  Memory{Epoch: 10, Store: store},
		nextXID: next,
		origin:  map[time.Time]uint64{}, born: map[uint64]cluster.XID{}, placed: map[time.Time]place{}, highest: map[uint64]map[cluster.Timeline]cluster.LSN{},
	}
	w.servers["a"] = newServer(false, next)
	for _, name := range standbys {
		w.servers[name] = newServer(true, next)
	}
	return w
}

func newServer(recovery bool, next cluster.XID) *server {
	s := &server{up: true, removed: normal(next - 100), slots: map[string]*cluster.Slot{}, disk: map[string]cluster.Slot{}, files: map[cluster.LSN]bool{}, later: map[cluster.LSN]cluster.LSN{}}
	s.node = cluster.Node{
		SystemID: system, Timeline: 1, InRecovery: recovery, WalLevel: "logical", MaxSlots: 20, Feedback: true, FreezeMaxAge: 200_000_000, NextXID: next,
		Started: epochZero.Add(-time.Hour), Library: "1.0", Script: "1.0", Protocol: 1, ServerVersion: 150018,
	}
	if recovery {
		s.node.Receive, s.node.Replay = cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x30000))
	} else {
		s.node.Insert, s.node.Flush = cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x30000))
	}
	return s
}

// normal steps over the special values, as the server does.
func normal(x cluster.XID) cluster.XID {
	if !x.Normal() {
		return cluster.FirstNormalXID
	}
	return x
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
	p.save(name)
	p.files[s.Restart.V] = true
	id := w.births
	w.origin[s.Incarnation.Birth.V], w.born[id] = id, w.nextXID
	w.highest[id] = map[cluster.Timeline]cluster.LSN{p.node.Timeline: end}
	w.placed[s.Incarnation.Birth.V] = place{p.node.Timeline, end}
	return s
}

// confirm moves a slot as a consumer does.
func (w *world) confirm(name string, restart, confirmed cluster.LSN, x cluster.XID) {
	p := w.primary()
	s := p.slots[name]
	saves := s.Restart.V != restart || s.CatalogXmin.V != x
	s.Restart, s.Confirmed = cluster.Some(restart), cluster.Some(confirmed)
	s.CatalogXmin, s.EffectiveCatalogXmin = cluster.Some(x), cluster.Some(x)
	p.files[restart] = true
	if saves {
		p.save(name)
	}
	id := w.origin[s.Incarnation.Birth.V]
	w.highest[id][p.node.Timeline] = max(w.highest[id][p.node.Timeline], confirmed)
	w.placed[s.Incarnation.Birth.V] = place{p.node.Timeline, confirmed}
}

// catchUp confirms all there is.
func (w *world) catchUp(name string) {
	w.write(0x1000)
	end := w.primary().node.Insert.V
	w.confirm(name, end-0x100, end, w.nextXID)
}
