package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What Decide says does not depend on the order of what it was given, and it
// changes nothing of that.
func TestPropertyOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		o := f.w.observe()
		before := fmt.Sprintf("%v", f.w.memory)
		one := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if after := fmt.Sprintf("%v", f.w.memory); after != before {
			t.Fatalf("Decide changed its argument: %s", cmp.Diff(before, after))
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for name, fact := range o.Nodes {
			fact.Value.Slots, fact.Value.Walsenders = slices.Clone(fact.Value.Slots), slices.Clone(fact.Value.Walsenders)
			shuffle(r, fact.Value.Slots)
			shuffle(r, fact.Value.Walsenders)
			o.Nodes[name] = fact
		}
		shuffle(r, o.Topology.Value.Members)
		two := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if !reflect.DeepEqual(one.Steps, two.Steps) || !reflect.DeepEqual(one.Verdicts, two.Verdicts) || !reflect.DeepEqual(one.Conditions, two.Conditions) {
			t.Fatalf("another order, another plan: %s", cmp.Diff(one.Steps, two.Steps))
		}
	})
}

func shuffle[T any](r *rand.Rand, all []T) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}
