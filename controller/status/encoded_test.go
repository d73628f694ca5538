package status_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// same wants what is kept from the time before to be what is encoded whole.
func same(t interface{ Fatalf(string, ...any) }, e *status.Encoded, s status.Status, mem plan.Memory) {
	for _, c := range []struct {
		kept  func() (map[string][]byte, error)
		whole func() (map[string][]byte, error)
	}{
		{func() (map[string][]byte, error) { return e.Slots(s) }, func() (map[string][]byte, error) { return status.SlotParts(s) }},
		{func() (map[string][]byte, error) { return e.Identities(mem) }, func() (map[string][]byte, error) { return status.SlotIdentities(mem) }},
	} {
		got, err := c.kept()
		want, err2 := c.whole()
		if err != nil || err2 != nil {
			t.Fatalf("%v, %v", err, err2)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("what is kept is not what there is: %s", diff)
		}
	}
}

func TestWhatIsEncodedOnceIsAsEncodedWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &status.Encoded{}
		for range rapid.IntRange(1, 6).Draw(t, "cycles") {
			s, mem := status.Status{}, plan.Memory{Slots: map[string]plan.SlotNote{}}
			for i := range 6 {
				if rapid.Bool().Draw(t, "is there") {
					name := fmt.Sprintf("slot%d", i)
					s.Slots = append(s.Slots, status.Slot{Name: name, Standbys: []status.Standby{{Node: "b", Verdict: rapid.SampledFrom([]plan.State{plan.Safe, plan.Pending}).Draw(t, "verdict")}}})
					mem.Slots[name] = plan.SlotNote{Database: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "database"), HighestF: cluster.LSN(rapid.Uint32().Draw(t, "moves"))}
				}
			}
			same(t, e, s, mem)
		}
	})
}

// A field that is written one day must not be forgotten in the comparison.
func TestEveryFieldThatIsWrittenIsCompared(t *testing.T) {
	s := func() status.Status {
		return status.Status{Slots: []status.Slot{{Name: "app", Standbys: []status.Standby{{Node: "b"}}}}}
	}
	memory := func(note plan.SlotNote) plan.Memory { return plan.Memory{Slots: map[string]plan.SlotNote{"app": note}} }
	try := func(what string, other status.Status, mem plan.Memory) {
		t.Run(what, func(t *testing.T) {
			e := &status.Encoded{}
			same(t, e, s(), memory(plan.SlotNote{}))
			same(t, e, other, mem)
		})
	}
	for i := range reflect.TypeFor[status.Slot]().NumField() {
		other := s()
		fill(reflect.ValueOf(&other.Slots[0]).Elem().Field(i))
		try("slot "+reflect.TypeFor[status.Slot]().Field(i).Name, other, memory(plan.SlotNote{}))
	}
	for i := range reflect.TypeFor[status.Standby]().NumField() {
		other := s()
		fill(reflect.ValueOf(&other.Slots[0].Standbys[0]).Elem().Field(i))
		try("standby "+reflect.TypeFor[status.Standby]().Field(i).Name, other, memory(plan.SlotNote{}))
	}
	for i := range reflect.TypeFor[plan.SlotNote]().NumField() {
		var note plan.SlotNote
		fill(reflect.ValueOf(&note).Elem().Field(i))
		try("note "+reflect.TypeFor[plan.SlotNote]().Field(i).Name, s(), memory(note))
	}
}

// fill makes a value another one than its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if at, ok := v.Addr().Interface().(*time.Time); ok {
			*at = noon
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	}
}

func BenchmarkLedgerOfAThousandStandingSlots(b *testing.B) {
	s, mem := status.Status{}, plan.Memory{Slots: map[string]plan.SlotNote{}}
	for i := range 1000 {
		slot := status.Slot{Name: fmt.Sprintf("slot%04d", i), Database: "shop", Plugin: "pgoutput"}
		for _, node := range []string{"b", "c", "d", "e", "f"} {
			slot.Standbys = append(slot.Standbys, status.Standby{Node: node, Verdict: plan.Safe, Since: noon})
		}
		s.Slots = append(s.Slots, slot)
		mem.Slots[slot.Name] = plan.SlotNote{Database: "shop", Plugin: "pgoutput", Incarnation: cluster.Incarnation{Inode: uint64(i), Birth: cluster.Some(noon)}}
	}
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			_, _ = status.SlotParts(s)
			_, _ = status.SlotIdentities(mem)
			_, _ = status.PositionParts(mem, noon, nil)
		}
	})
	b.Run("kept", func(b *testing.B) {
		e := &status.Encoded{}
		for b.Loop() {
			_, _ = e.Slots(s)
			_, _ = e.Identities(mem)
		}
	})
}
