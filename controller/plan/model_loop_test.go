package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

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
		if at, ok := s.later[want.Position.Restart]; ok && s.files[at] {
			walk.Way, walk.FileAt, walk.File = laterFile, cluster.Some(at), cluster.Some([]byte("snapshot at "+at.String()))
		}
		o.Walks[want.Slot] = walk
	}
}

// observe reads all that is up.
func (w *world) observe() Observation {
	w.cycle++
	o := Observation{Begun: w.now, Cycle: w.cycle, Nodes: map[string]Fact[NodeRead]{}, Snapshots: map[string][]byte{}}
	o.Topology = Fact[cluster.Topology]{At: w.now, Err: w.unknown}
	o.Topology.Value.Manager, o.Topology.Value.Leader = w.manager, cluster.Opt[string]{V: w.leader, OK: w.leader != ""}
	for _, name := range slices.Sorted(maps.Keys(w.servers)) {
		if w.unlisted[name] && !w.servers[name].up {
			continue
		}
		o.Topology.Value.Members = append(o.Topology.Value.Members, cluster.Member{Name: name})
		s := w.servers[name]
		if bad, ok := w.fail[name]; ok {
			o.Nodes[name] = bad
			continue
		}
		if !s.up {
			// As the loop gives it: what was read last, with its time, beside the error.
			o.Nodes[name] = Fact[NodeRead]{At: s.last.At, Value: s.last.Value, Err: "connection refused", Reason: ReasonUnreachable}
			continue
		}
		s.last = Fact[NodeRead]{At: w.now, Value: s.read()}
		o.Nodes[name] = s.last
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

// read is what one batch sees: whether WAL and file are there is looked at each time.
func (s *server) read() NodeRead {
	r := NodeRead{Node: s.node, Walsenders: s.walsenders}
	r.Node.UsedSlots = len(s.slots)
	if s.node.InRecovery && len(s.older()) == 0 {
		r.Node.HeldForAllSince = s.held.sinceWhen()
	}
	for _, name := range slices.Sorted(maps.Keys(s.slots)) {
		slot := *s.slots[name]
		file := slot.Restart.Or(0)
		if slot.Marker != nil {
			m := *slot.Marker
			slot.Marker = &m
			file = m.Witness.Or(file)
		}
		slot.WALok = slot.WALok && (!slot.Restart.OK || slot.Restart.V >= s.walFrom)
		if slot.Snapshot == cluster.SnapshotValid && !s.files[file] {
			slot.Snapshot = cluster.SnapshotAbsent
		}
		r.Slots = append(r.Slots, slot)
	}
	return r
}

// turn is one cycle: observe, decide, apply, settle.
func (w *world) turn() {
	o := w.observe()
	w.plan = Decide(w.now, w.policy, o, w.memory)
	w.unheld = w.unheld && w.plan.Primary == ""
	w.steps = w.carryOut(w.plan)
	w.memory, w.verdicts, w.conditions = Settle(w.now, w.policy, o, w.plan, w.steps)
	w.publish()
	w.now = w.now.Add(20 * time.Millisecond)
}

func (w *world) turns(n int) {
	for range n {
		w.turn()
	}
}

// publish keeps what the ledger gets: positions each 30 seconds, what a slot is
// at once.
func (w *world) publish() {
	due := w.written.IsZero() || w.now.Sub(w.written) >= 30*time.Second
	if due {
		w.written, w.reached, w.reachedOn = w.now, w.memory.Reached, w.memory.Timeline
	}
	fresh := map[string]SlotNote{}
	for name, note := range w.memory.Slots {
		fresh[name] = note
		if old, ok := w.ledger[name]; ok && !due && reflect.DeepEqual(identity(old), identity(note)) {
			fresh[name] = old
		}
	}
	w.ledger = fresh
}

// identity is what of a note the ledger must not miss for a moment.
func identity(n SlotNote) SlotNote {
	return SlotNote{Incarnation: n.Incarnation, Database: n.Database, Plugin: n.Plugin, TwoPhase: n.TwoPhase, Before: n.Before, Ancestors: n.Ancestors,
		Unproven: n.Unproven, LostWith: n.LostWith, Failover: n.Failover, FailoverDue: n.FailoverDue, Ahead: n.Ahead, Joined: n.Joined}
}

// newLeader is another controller, or the same after a restart: it has the ledger only.
func (w *world) newLeader() {
	kept := w.memory
	kept.Conditions = nil
	kept.Slots, kept.Standbys = w.ledger, map[string]NodeNote{}
	for name, note := range w.memory.Standbys {
		note.ReadAt, note.Replay, note.OldestXmin = time.Time{}, 0, 0
		kept.Standbys[name] = note
	}
	text, err := json.Marshal(kept)
	if err != nil {
		panic(err)
	}
	timeline := w.memory.Timeline
	w.memory = Memory{}
	if err := json.Unmarshal(text, &w.memory); err != nil {
		panic(err)
	}
	if w.reachedOn == timeline {
		w.memory.Reached = w.reached
	}
	w.memory.Epoch++
}

func (w *world) carryOut(pl Plan) []StepOutcome {
	done := map[string]StepOutcome{}
	var all []StepOutcome
	for _, step := range pl.Steps {
		out := StepOutcome{StepID: step.ID}
		ready, why := Ready(step, done)
		if why == "" && w.refuse != nil {
			out.Err = w.refuse(step)
		}
		switch {
		case why != "":
			out.Skipped = why
		case out.Err == "":
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
