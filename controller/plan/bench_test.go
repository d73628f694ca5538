package plan

import (
	"fmt"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// crowd is a thousand slots on two standbys, all SAFE.
func crowd(b *testing.B) (*world, []string) {
	b.Helper()
	w := newWorld("b", "c")
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("s%04d", i))
		w.createSlot(names[i])
	}
	for _, s := range w.servers {
		s.node.MaxSlots = len(names) + 10
	}
	w.turns(6)
	for _, v := range w.verdicts {
		if v.State != Safe {
			b.Fatalf("%s on %s is %s %s: %s", v.Slot, v.Standby, v.State, v.Reason, v.Message)
		}
	}
	return w, names
}

// decide is a turn of which only Decide and Settle are timed.
func (w *world) decide(b *testing.B) {
	b.StopTimer()
	o := w.observe()
	b.StartTimer()
	w.plan = Decide(w.now, w.policy, o, w.memory)
	b.StopTimer()
	w.steps = w.carryOut(w.plan)
	b.StartTimer()
	w.memory, w.verdicts, w.conditions = Settle(w.now, w.policy, o, w.plan, w.steps)
	b.StopTimer()
	w.now = w.now.Add(w.policy.Interval)
}

func BenchmarkThousandStandingSlots(b *testing.B) {
	w, _ := crowd(b)
	b.ResetTimer()
	for range b.N {
		w.decide(b)
	}
}

func BenchmarkThousandMovingSlots(b *testing.B) {
	w, names := crowd(b)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for _, name := range names {
			s := w.primary().slots[name]
			w.confirm(name, s.Restart.V, s.Confirmed.V+cluster.LSN(0x10), s.CatalogXmin.V)
		}
		w.write(0x1000)
		w.replayAll()
		w.decide(b)
	}
}
