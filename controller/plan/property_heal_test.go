package plan

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Whatever has happened, once it is over all becomes SAFE again.
func TestPropertyHeals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { heal(t, later(t, 40)) })
}

// Applying the plan to the model and deciding again gives an empty plan.
func TestPropertyApplyThenDecideIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 40)
		heal(t, f)
		w := f.w
		if w.primary() == nil {
			return
		}
		w.now = w.now.Add(time.Minute)
		w.turns(3)
		if len(w.plan.Steps) != 0 || w.plan.Again {
			t.Fatalf("again %t, left to do: %s", w.plan.Again, describe(w.plan))
		}
	})
}

func heal(t *rapid.T, f *faults) {
	w := f.w
	if w.primary() == nil {
		return
	}
	repair(f)
	for range 8 {
		for name, s := range w.primary().slots {
			if s.Kind == cluster.Logical && s.Invalidated == "" {
				w.catchUp(name)
			}
		}
		w.replayAll()
		for name, s := range w.servers {
			if s.node.InRecovery && s.node.SyncSlots {
				w.syncSlots(name)
			}
		}
		w.turn()
		w.now = w.now.Add(time.Second)
	}
	for _, v := range w.verdicts {
		if v.State != Safe {
			t.Fatalf("%s on %s is %s(%s) %s\n%s", v.Slot, v.Standby, v.State, v.Reason, v.Message, describe(w.plan))
		}
	}
}

// repair does what an administrator must do: bring nodes back, make room, drop
// what is lost or foreign, end sessions that the controller may not end.
func repair(f *faults) {
	w := f.w
	for i := range w.open {
		if w.open[i].to == 0 {
			w.open[i].to = w.primary().node.Insert.V
		}
	}
	for _, s := range w.servers {
		w.rejoin(s)
		s.sessions = slices.DeleteFunc(s.sessions, func(one *session) bool { return one.busy || !w.policy.ManageOldSessions })
		s.up, s.paused, s.full, s.keep, s.node.IdleSlotTimeout = true, false, false, 0, 0
		maps.DeleteFunc(s.slots, func(name string, v *cluster.Slot) bool {
			foreign := v.Marker == nil && v.Kind == cluster.Logical && s.node.InRecovery && !(v.Synced && s.node.SyncSlots)
			return foreign || v.Invalidated != "" && !s.node.InRecovery
		})
		if h := s.slots[cluster.HoldName]; h != nil {
			h.ActivePID = 0
		}
	}
}
