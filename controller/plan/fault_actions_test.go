package plan

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

var slotNames = []string{"app", "billing", "cdc"}

// action is one thing that happens. It may find that it cannot.
type action struct {
	name   string
	weight int
	do     func(f *faults, t *rapid.T, some, slot string)
}

var actions = []action{
	{"confirm", 4, (*faults).confirm},
	{"vacuum", 2, func(f *faults, _ *rapid.T, _, _ string) { f.led(f.w.vacuum) }},
	{"replay", 3, (*faults).replay},
	{"pause replay", 1, func(f *faults, _ *rapid.T, some, _ string) { s := f.w.servers[some]; s.paused = !s.paused }},
	{"begin or end a transaction", 2, (*faults).transaction},
	{"checkpoint", 2, func(f *faults, _ *rapid.T, some, _ string) {
		if f.w.servers[some].up {
			f.w.servers[some].checkpoint()
		}
	}},
	{"limit WAL", 1, func(f *faults, _ *rapid.T, some, _ string) { s := f.w.servers[some]; s.keep = 0x3000 - s.keep }},
	{"create slot", 2, func(f *faults, _ *rapid.T, _, slot string) {
		f.led(func() {
			if f.w.primary().slots[slot] == nil {
				f.w.createSlot(slot)
			}
		})
	}},
	{"drop slot", 1, func(f *faults, _ *rapid.T, _, slot string) { f.led(func() { delete(f.w.primary().slots, slot) }) }},
	{"recreate slot", 1, func(f *faults, _ *rapid.T, _, slot string) { f.led(func() { f.w.createSlot(slot) }) }},
	{"drop hold", 1, func(f *faults, _ *rapid.T, some, _ string) {
		f.w.unheld = true
		delete(f.w.servers[some].slots, cluster.HoldName)
	}},
	{"drop the primary's hold", 1, func(f *faults, _ *rapid.T, _, _ string) {
		f.led(func() { f.w.unheld = true; delete(f.w.primary().slots, cluster.HoldName) })
	}},
	{"remake hold by hand", 1, (*faults).remakeHold},
	{"use hold", 1, func(f *faults, _ *rapid.T, some, _ string) {
		if h := f.w.servers[some].slots[cluster.HoldName]; h != nil {
			h.Restart = cluster.Some(f.w.servers[some].end())
		}
	}},
	{"overtake hold", 1, func(f *faults, _ *rapid.T, some, _ string) {
		if h := f.w.servers[some].slots[cluster.HoldName]; h != nil {
			f.w.unheld = true
			setXmin(h, f.w.nextXID)
		}
	}},
	{"disk full", 1, func(f *faults, _ *rapid.T, some, _ string) { s := f.w.servers[some]; s.full = !s.full }},
	{"crash", 2, func(f *faults, _ *rapid.T, some, _ string) { f.w.servers[some].crash() }},
	{"away", 1, func(f *faults, _ *rapid.T, some, _ string) {
		if s := f.w.servers[some]; s.node.InRecovery {
			s.up = false
		}
	}},
	{"listed or not", 1, func(f *faults, _ *rapid.T, some, _ string) {
		if f.w.unlisted == nil {
			f.w.unlisted = map[string]bool{}
		}
		f.w.unlisted[some] = !f.w.unlisted[some] && !f.w.servers[some].up
	}},
	{"the primary dies", 1, func(f *faults, _ *rapid.T, _, _ string) { f.led(func() { f.w.primary().up = false }) }},
	{"back", 3, (*faults).back},
	{"promote", 2, (*faults).promote},
	{"rejoin", 2, func(f *faults, _ *rapid.T, some, _ string) { f.w.rejoin(f.w.servers[some]) }},
	{"minutes", 2, func(f *faults, _ *rapid.T, _, _ string) { f.w.now = f.w.now.Add(time.Minute) }},
	{"longer than max_hold_age", 1, func(f *faults, _ *rapid.T, _, _ string) { f.w.now = f.w.now.Add(time.Hour + time.Minute) }},
	{"new term", 1, func(f *faults, _ *rapid.T, _, _ string) { f.w.memory.Epoch++ }},
	{"new leader with the ledger only", 2, func(f *faults, _ *rapid.T, _, _ string) { f.w.newLeader() }},
	{"the ledger is lost", 1, func(f *faults, _ *rapid.T, _, _ string) { f.w.wipe() }},
	{"forget a node", 1, func(f *faults, _ *rapid.T, some, _ string) { f.w.memory.Forget(some) }},
	{"another name", 1, func(f *faults, _ *rapid.T, some, _ string) { f.rename(some, some+"2") }},
	{"names change places", 1, func(f *faults, t *rapid.T, some, _ string) {
		f.rename(some, rapid.SampledFrom(slices.Sorted(maps.Keys(f.w.servers))).Draw(t, "other"))
	}},
	{"lost mirror", 1, func(f *faults, _ *rapid.T, some, slot string) {
		if s := f.w.servers[some]; s.node.InRecovery {
			delete(s.slots, slot)
		}
	}},
	{"lost file", 1, func(f *faults, _ *rapid.T, some, slot string) {
		if m := f.w.servers[some].slots[slot]; m != nil {
			delete(f.w.servers[some].files, m.Restart.Or(0))
		}
	}},
	{"foreign slot", 1, (*faults).foreign},
	{"move a mirror by hand", 1, (*faults).move},
	{"move a mirror while nobody leads", 1, func(f *faults, t *rapid.T, some, slot string) { f.move(t, some, slot); f.w.newLeader() }},
	{"outdate a catalog row", 3, func(f *faults, _ *rapid.T, _, _ string) { f.led(f.w.outdate) }},
	{"connect", 2, func(f *faults, t *rapid.T, some, _ string) {
		if s := f.w.servers[some]; s.up {
			application := rapid.SampledFrom([]string{"psql", "Patroni"}).Draw(t, "application")
			f.w.connect(s, application, rapid.Bool().Draw(t, "busy"))
		}
	}},
	{"look", 3, func(f *faults, _ *rapid.T, some, _ string) {
		if s := f.w.servers[some]; s.up {
			for _, one := range s.sessions {
				f.w.look(s, one)
			}
		}
	}},
	{"disconnect", 1, func(f *faults, _ *rapid.T, some, _ string) {
		if s := f.w.servers[some]; len(s.sessions) > 0 {
			s.sessions = s.sessions[1:]
		}
	}},
	{"network", 1, func(f *faults, t *rapid.T, some, _ string) {
		kind := rapid.SampledFrom([]StepKind{"", StepHold, StepStamp, StepApply, StepDrop, StepMark}).Draw(t, "kind")
		f.w.refuse = func(step Step) string {
			if step.Node == some && (kind == "" || kind == step.Kind) {
				return "connection reset"
			}
			return ""
		}
	}},
	{"lost answer", 1, func(f *faults, _ *rapid.T, some, _ string) {
		f.w.lose = func(step Step) bool { return step.Node == some }
	}},
	{"crash at a step", 2, (*faults).crashAtAStep},
	{"failover flag", 1, func(f *faults, _ *rapid.T, _, slot string) {
		f.led(func() {
			if s := f.w.primary().slots[slot]; s != nil && s.Invalidated == "" {
				s.Failover = !s.Failover
			}
		})
	}},
	{"worker on or off", 1, func(f *faults, _ *rapid.T, some, _ string) {
		s := f.w.servers[some]
		s.node.SyncSlots = !s.node.SyncSlots
	}},
	{"work", 2, func(f *faults, _ *rapid.T, some, _ string) {
		if p, s := f.w.primary(), f.w.servers[some]; p != nil && s.up && s.node.InRecovery && s.node.SyncSlots && s.node.Timeline == p.node.Timeline {
			f.w.syncSlots(some)
		}
	}},
	{"idle timeout", 1, func(f *faults, _ *rapid.T, some, _ string) {
		s := f.w.servers[some]
		s.node.IdleSlotTimeout = time.Minute - s.node.IdleSlotTimeout
	}},
}

// chosen has each action as often as it weighs.
var chosen = func() (all []string) {
	for _, a := range actions {
		all = append(all, slices.Repeat([]string{a.name}, a.weight)...)
	}
	return all
}()

// led does what needs a primary.
func (f *faults) led(do func()) {
	if f.w.primary() != nil {
		do()
	}
}

func (f *faults) confirm(t *rapid.T, _, name string) {
	w := f.w
	if w.primary() == nil {
		return
	}
	w.write(cluster.LSN(rapid.Uint64Range(1, 0x2000).Draw(t, "bytes")))
	slot := w.primary().slots[name]
	if slot == nil || slot.Invalidated != "" {
		return
	}
	x := slot.EffectiveCatalogXmin.V
	if !rapid.Bool().Draw(t, "moves R") {
		w.confirm(name, slot.Restart.V, w.primary().node.Insert.V, x)
		return
	}
	w.confirm(name, max(slot.Confirmed.V, slot.Restart.V), w.primary().node.Insert.V, normal(x+(w.nextXID-x)/2))
	w.primary().files[slot.Restart.V] = rapid.Bool().Draw(t, "file")
	if rapid.Bool().Draw(t, "later file") {
		at := slot.Restart.V + 1
		w.primary().later[slot.Restart.V], w.primary().files[at] = at, true
	}
}

// crashAtAStep: a server goes down in the middle of a call, before anything of it
// is on disk or when all of it is and nobody has the answer, and vacuum takes at
// once what the crash has left unpinned. The steps after it find it up again.
func (f *faults) crashAtAStep(t *rapid.T, some, _ string) {
	w := f.w
	kind := rapid.SampledFrom([]StepKind{StepHold, StepHold, StepStamp, StepApply, StepDrop, StepMark}).Draw(t, "kind")
	made := rapid.Bool().Draw(t, "made")
	vacuums := rapid.Bool().Draw(t, "vacuums")
	crashed := false
	crash := func(step Step) bool {
		if step.Node != some || step.Kind != kind || crashed {
			return false
		}
		crashed = true
		w.servers[some].crash()
		if vacuums && w.primary() != nil {
			w.vacuum()
		}
		return true
	}
	if made {
		w.lose = crash
		return
	}
	w.refuse = func(step Step) string {
		if crash(step) {
			return "server closed the connection unexpectedly"
		}
		return ""
	}
}

func (f *faults) transaction(*rapid.T, string, string) {
	w := f.w
	p := w.primary()
	if p == nil {
		return
	}
	at := p.node.Insert.V
	w.write(0x100)
	for i := range w.open {
		if w.open[i].to == 0 {
			w.open[i].to = at + 0x80
			return
		}
	}
	w.open = append(w.open, span{from: at})
}

func (f *faults) replay(t *rapid.T, name, _ string) {
	s, p := f.w.servers[name], f.w.primary()
	if p == nil || !s.up || !s.node.InRecovery || s.node.Timeline != p.node.Timeline || s.node.Replay.V >= p.node.Insert.V {
		return
	}
	behind := p.node.Insert.V - s.node.Replay.V
	f.w.replay(name, s.node.Replay.V+cluster.LSN(rapid.Uint64Range(1, uint64(behind)).Draw(t, "replayed")))
}

// remakeHold: a slot of that name without the marker, or with one of long ago.
func (f *faults) remakeHold(t *rapid.T, some, _ string) {
	s := f.w.servers[some]
	h := s.slots[cluster.HoldName]
	if h == nil {
		return
	}
	f.w.unheld = true
	if generation := h.Marker; rapid.Bool().Draw(t, "from an old disk") && generation != nil {
		old := *generation
		old.Generation = max(old.Generation-1, 1)
		h.Marker = &old
		h.Incarnation = f.w.incarnation()
		setXmin(h, f.w.nextXID)
		return
	}
	delete(s.slots, cluster.HoldName) // the next call may make it; by hand it is a foreign one
}

func (f *faults) back(_ *rapid.T, some, _ string) {
	s := f.w.servers[some]
	if !s.up && (s.node.InRecovery || f.w.primary() == nil && s.node.Timeline >= f.w.memory.Timeline) {
		s.up = true
		s.crash()
	}
}

// promote: a foreign logical slot on a standby would be invalidated by the
// server; nothing is promised for it.
func (f *faults) promote(_ *rapid.T, name, _ string) {
	s := f.w.servers[name]
	current := f.w.memory.Timeline
	if p := f.w.primary(); p != nil {
		current = p.node.Timeline
	}
	if !s.up || !s.node.InRecovery || s.node.Timeline != current {
		return
	}
	for n, v := range s.slots {
		if v.Marker == nil && !v.Synced || v.Synced && v.Invalidated != "" {
			delete(s.slots, n)
		}
	}
	f.w.promote(name)
}

func (f *faults) foreign(_ *rapid.T, some, name string) {
	w := f.w
	if s := w.servers[some]; s.up && s.node.InRecovery && s.slots[name] == nil {
		x, at := cluster.Some(w.nextXID), s.node.Replay
		s.slots[name] = &cluster.Slot{Name: name, Kind: cluster.Logical, Plugin: "pgoutput", Database: "shop", DatabaseOID: 5, Incarnation: w.incarnation(),
			Restart: cluster.Some(at.V - 0x100), Confirmed: at, CatalogXmin: x, EffectiveCatalogXmin: x, WALok: true, Saved: true}
	}
}

// move has somebody consume from a mirror on its standby, as one can from 16 on, what
// the slot's own consumer has not confirmed.
func (f *faults) move(_ *rapid.T, some, name string) {
	s := f.w.servers[some]
	m := s.slots[name]
	if s.up && s.node.InRecovery && m != nil && m.Marker != nil && m.Invalidated == "" && m.Confirmed.Or(0) < s.node.Replay.V {
		m.Confirmed = s.node.Replay
		f.w.placed[m.Incarnation.Birth.V] = place{s.node.Timeline, s.node.Replay.V}
	}
}

// believe: what was moved by hand cannot be told from what the slot had before a
// crash took that back. So from there on it counts as confirmed.
func (f *faults) believe() {
	if f.w.memory.Steady.Or(true) {
		return
	}
	for _, s := range f.w.servers {
		for _, m := range s.slots {
			if id := f.w.origin[m.Incarnation.Birth.Or(time.Time{})]; f.w.highest[id] != nil && m.Kind == cluster.Logical {
				at := f.w.placed[m.Incarnation.Birth.V]
				f.w.highest[id][at.timeline] = max(f.w.highest[id][at.timeline], m.Confirmed.Or(0))
			}
		}
	}
}

// rename gives a server another's name, and that one its own, if there is one.
func (f *faults) rename(from, to string) {
	w := f.w
	one, other := w.servers[from], w.servers[to]
	delete(w.servers, from)
	if other != nil {
		w.servers[from] = other
	}
	w.servers[to] = one
}
