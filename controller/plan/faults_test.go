package plan

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// faults drives a world through whatever may happen to it.
type faults struct {
	w      *world
	before map[string]map[string]cluster.Slot // per server, before the cycle
	starts map[string]time.Time               // of the servers then
	absent map[string]int                     // per slot: successive reads of one primary, timeline and epoch without it
	reads  struct {
		primary  string
		timeline cluster.Timeline
		epoch    cluster.Epoch
	}
}

func (f *faults) act(t *rapid.T) {
	name := rapid.SampledFrom(chosen).Draw(t, "action")
	some := rapid.SampledFrom(slices.Sorted(maps.Keys(f.w.servers))).Draw(t, "server")
	slot := rapid.SampledFrom(slotNames).Draw(t, "slot")
	for _, a := range actions {
		if a.name == name {
			a.do(f, t, some, slot)
		}
	}
}

// cycle is what happens, one cycle of the controller, and what of it the
// properties look at.
func (f *faults) cycle(t *rapid.T) {
	f.w.refuse, f.w.lose = nil, nil
	for range rapid.IntRange(1, 3).Draw(t, "actions") {
		f.act(t)
	}
	f.remember()
	f.w.turn()
	f.believe()
	f.count()
}

func (f *faults) remember() {
	f.before, f.starts = map[string]map[string]cluster.Slot{}, map[string]time.Time{}
	for name, s := range f.w.servers {
		f.starts[name] = s.node.Started
		f.before[name] = map[string]cluster.Slot{}
		for _, slot := range s.read().Slots {
			f.before[name][slot.Name] = slot
		}
	}
}

// count counts, beside the controller, in how many reads a slot was absent.
func (f *faults) count() {
	w := f.w
	if w.plan.Primary == "" {
		return
	}
	now := f.reads
	now.primary, now.timeline, now.epoch = w.plan.Primary, w.memory.Timeline, w.memory.Epoch
	if now != f.reads || f.absent == nil {
		f.absent = map[string]int{}
	}
	f.reads = now
	for _, name := range slotNames {
		f.absent[name]++
		if _, ok := f.before[w.plan.Primary][name]; ok {
			f.absent[name] = 0
		}
	}
}
