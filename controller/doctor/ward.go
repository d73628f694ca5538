package doctor

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// ward is an observation with what several checks want to know of it.
type ward struct {
	Observation
	writable []*Member
	primary  *Member // nil where not exactly one member is writable
}

func newWard(o Observation) *ward {
	o.Members = slices.Clone(o.Members)
	slices.SortFunc(o.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	w := &ward{Observation: o}
	for i := range w.Members {
		if m := &w.Members[i]; m.Inspection.OK() && !m.Inspection.Value.InRecovery {
			w.writable = append(w.writable, m)
		}
	}
	if len(w.writable) == 1 {
		w.primary = w.writable[0]
	}
	return w
}

// standbys are the members in recovery.
func (w *ward) standbys() []*Member {
	var all []*Member
	for i := range w.Members {
		if m := &w.Members[i]; m.Inspection.OK() && m.Inspection.Value.InRecovery {
			all = append(all, m)
		}
	}
	return all
}

// inspected are the members that answered at all.
func (w *ward) inspected() []*Member {
	return slices.SortedFunc(slices.Values(append(w.standbys(), w.writable...)), func(a, b *Member) int { return cmp.Compare(a.Name, b.Name) })
}

// read gives a member's read where it is complete.
func (m *Member) read() (plan.NodeRead, bool) {
	return m.Read.Value, m.Read.OK()
}

func (m *Member) setting(name string) (string, bool) {
	value, known := m.Inspection.Value.Settings[name]
	return value, known && m.Inspection.OK()
}

func (m *Member) number(name string) (int64, bool) {
	text, known := m.setting(name)
	value, err := strconv.ParseInt(text, 10, 64)
	return value, known && err == nil
}

// managed are the slots of the primary that slotkeeper is to keep.
func (w *ward) managed() []cluster.Slot {
	if w.primary == nil {
		return nil
	}
	var all []cluster.Slot
	if read, ok := w.primary.read(); ok {
		for _, s := range read.Slots {
			if w.Policy.Selected(s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// ours reports whether a slot carries the marker of this scope.
func (w *ward) ours(s cluster.Slot) bool {
	return s.Marker != nil && s.Marker.Scope == w.Policy.Scope
}

func named(slots []cluster.Slot, name string) *cluster.Slot {
	for i := range slots {
		if slots[i].Name == name {
			return &slots[i]
		}
	}
	return nil
}

// onPrimary is where SQL for the objects of the cluster is run, "" where there is no primary.
func (w *ward) onPrimary() string {
	if w.primary == nil {
		return ""
	}
	return w.primary.Name
}
