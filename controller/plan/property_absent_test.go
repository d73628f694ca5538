package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// What is called SAFE stays so when the controller is gone from that moment on,
// whatever the servers do then of their own accord. The other properties look at
// what is called SAFE in the next cycle, when the controller has seen what happened.
func TestPropertySafeOutlivesTheController(t *testing.T) { always(t, safeOutlivesTheController) }

func safeOutlivesTheController(f *faults) string {
	if f.w.plan.Primary == "" || f.w.primary() == nil {
		return "" // a verdict is as old as its proof then
	}
	alone := f.w.apart()
	alone.goesOn()
	for _, v := range alone.verdicts {
		if m := alone.servers[v.Standby].slots[v.Slot]; v.State != Safe || m != nil && m.Synced {
			continue
		}
		if why := alone.decoder(v.Standby, v.Slot); why != "" {
			return fmt.Sprintf("%s on %s was SAFE when the controller went, and then %s", v.Slot, v.Standby, why)
		}
	}
	return ""
}

// goesOn is the worst hour of a cluster without a controller: the primary crashes
// and forgets what only its memory held, all consumers confirm all that there is,
// catalogs change, VACUUM and checkpoints take what nothing on disk pins, everywhere.
// Only a limit to the WAL that slots keep is left out: who sets it gives mirrors up.
func (w *world) goesOn() {
	w.primary().crash()
	w.outdate()
	for _, name := range slotNames {
		if s := w.primary().slots[name]; s != nil && s.Invalidated == "" {
			w.catchUp(name)
		}
	}
	for _, s := range w.servers {
		s.keep = 0
	}
	w.primary().checkpoint()
	w.vacuum()
	w.replayAll()
	for _, s := range w.servers {
		if s.up {
			s.checkpoint()
		}
	}
}

// apart is a copy of the cluster, with which anything may be done.
func (w *world) apart() *world {
	c := *w
	c.open, c.died = slices.Clone(w.open), slices.Clone(w.died)
	c.origin, c.born, c.placed = maps.Clone(w.origin), maps.Clone(w.born), maps.Clone(w.placed)
	c.highest = map[uint64]map[cluster.Timeline]cluster.LSN{}
	for id, on := range w.highest {
		c.highest[id] = maps.Clone(on)
	}
	c.servers = map[string]*server{}
	for name, s := range w.servers {
		c.servers[name] = s.apart()
	}
	return &c
}

func (s *server) apart() *server {
	c := *s
	c.disk, c.files, c.later, c.vacuums = maps.Clone(s.disk), maps.Clone(s.files), maps.Clone(s.later), slices.Clone(s.vacuums)
	c.slots = map[string]*cluster.Slot{}
	for name, slot := range s.slots {
		own := *slot
		c.slots[name] = &own
	}
	c.sessions = nil
	for _, one := range s.sessions {
		own := *one
		c.sessions = append(c.sessions, &own)
	}
	return &c
}
