package plan

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Without a fresh topology, a fresh read of one primary, and a fence that is not
// another leader's, nothing is written; and each call shows the lease's epoch.
func TestPropertyNothingWithoutFreshLeaseTopologyAndPrimary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		w := f.w
		f.led(func() { w.createSlot("new") }) // there is something to do
		now := func() Observation { w.cycle++; return w.observe() }
		primary := FindPrimary(now(), w.memory)
		for name, spoil := range map[string]func(o Observation) (spoiled []string){
			"the primary is silent": func(o Observation) []string {
				o.Nodes[primary] = Fact[NodeRead]{Err: "timeout"}
				return slices.Collect(maps.Keys(w.servers))
			},
			"the primary's read is old": func(o Observation) []string { age(o, primary); return slices.Collect(maps.Keys(w.servers)) },
			"b is silent":               func(o Observation) []string { o.Nodes["b"] = Fact[NodeRead]{Err: "timeout"}; return []string{"b"} },
			"b's read is old":           func(o Observation) []string { age(o, "b"); return []string{"b"} },
			"a later leader was on b":   func(o Observation) []string { lead(o, "b", w.memory.Epoch+1); return []string{"b"} },
			"a later leader was on a": func(o Observation) []string {
				lead(o, primary, w.memory.Epoch+1)
				return slices.Collect(maps.Keys(w.servers))
			},
			"another etcd's leader on c": func(o Observation) []string { foreignTo(o, "c"); return []string{"c"} },
		} {
			o := now()
			untouched := spoil(o)
			if primary == "" || slices.Contains(untouched, primary) && len(untouched) == 1 {
				untouched = slices.Collect(maps.Keys(w.servers))
			}
			for _, step := range Decide(w.now, w.policy, o, w.memory).Steps {
				if slices.Contains(untouched, step.Node) {
					t.Fatalf("%s, and there is step %s", name, step.ID)
				}
				want := cluster.Fence{Scope: scope, Store: store, Epoch: w.memory.Epoch, Owner: "ctl", SystemID: system, Timeline: o.Nodes[primary].Value.Node.Timeline}
				if step.Fence != want {
					t.Fatalf("%s shows %+v, want %+v", step.ID, step.Fence, want)
				}
			}
		}
	})
}

// Where the topology cannot be read, what is there goes on moving, and nothing is
// made and nothing dropped but what must not exist on a primary.
func TestPropertyNothingIsMadeOrDroppedWithoutATopology(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		w := f.w
		f.led(func() { w.createSlot("new") })
		o := w.observe()
		o.Topology.Err = "etcd does not answer"
		for _, step := range Decide(w.now, w.policy, o, w.memory).Steps {
			if step.Kind == StepDrop && !step.OnPrimary {
				t.Fatalf("step %s drops %q", step.ID, step.Names)
			}
			for _, ch := range step.Changes {
				if m := w.servers[step.Node].slots[ch.Name]; m == nil || m.Marker == nil || m.Marker.Kind != cluster.MarkMirror {
					t.Fatalf("step %s makes %s", step.ID, ch.Name)
				}
			}
		}
	})
}

func age(o Observation, node string) {
	fact := o.Nodes[node]
	fact.At = o.Begun.Add(-DefaultStaleAfter - time.Second)
	o.Nodes[node] = fact
}

func lead(o Observation, node string, epoch cluster.Epoch) {
	fact := o.Nodes[node]
	fact.Value.Node.Fence = cluster.Some(cluster.Fence{Scope: scope, Store: store, Epoch: epoch, Owner: "other"})
	o.Nodes[node] = fact
}

func foreignTo(o Observation, node string) {
	fact := o.Nodes[node]
	fact.Value.Node.Fence = cluster.Some(cluster.Fence{Scope: scope, Store: "store-2", Epoch: 1})
	o.Nodes[node] = fact
}

// Each step waits for its node's fence, where that is raised in the same plan.
func TestPropertyFenceComesFirst(t *testing.T) {
	always(t, func(f *faults) string {
		fenced := map[string]bool{}
		for _, step := range f.w.plan.Steps {
			fenced[step.Node] = fenced[step.Node] || step.Kind == StepFence
			if fenced[step.Node] && step.Kind != StepFence && !slices.Contains(step.Needs, "fence/"+step.Node) {
				return step.ID + " does not need its fence"
			}
		}
		return ""
	})
}
