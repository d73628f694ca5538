package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// choice is all that is random about a step. It follows from the seed and the
// step's number alone, whatever became of the steps before.
type choice struct {
	seed   uint64
	step   int
	fault  fault
	a, b   int           // which of those there are: a node, a slot, a way
	lasts  time.Duration // of what is begun and ended
	copied bool          // a standby is copied, promoted and decoded
	whose  int           // which one
	during bool          // while the fault is in force, where one lasts
}

func (c choice) String() string {
	text := fmt.Sprintf("seed %d: %s a=%d b=%d lasts=%s", c.seed, c.fault.name, c.a, c.b, c.lasts)
	if c.copied {
		text += fmt.Sprintf(" copy=%d during=%t", c.whose, c.during)
	}
	return text
}

// fault is one kind of trouble. do makes it, mends what it must, and leaves the
// rest to the others and to the recovery at the round's end.
type fault struct {
	name   string
	weight int
	do     func(w *world, c choice)
}

func (w *world) choose(step int) choice { return choose(w.seed, step) }

func choose(seed uint64, step int) choice {
	r := rand.New(rand.NewPCG(seed, uint64(step)))
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	c := choice{seed: seed, step: step}
	at := r.IntN(sum)
	for _, f := range faults {
		if at -= f.weight; at < 0 {
			c.fault = f
			break
		}
	}
	c.a, c.b = r.IntN(1<<16), r.IntN(1<<16)
	c.lasts = time.Duration(1000+r.IntN(5000)) * time.Millisecond
	c.copied, c.whose, c.during = r.IntN(4) > 0, r.IntN(1<<16), r.IntN(2) == 0
	return c
}

func TestSameSeedSameChoices(t *testing.T) {
	seen := map[string]bool{}
	for step := 1; step <= 2000; step++ {
		c := choose(1, step)
		if again := choose(1, step); c.String() != again.String() {
			t.Fatalf("step %d is %s, and again %s", step, c, again)
		}
		seen[c.fault.name] = true
	}
	for _, f := range faults {
		if !seen[f.name] {
			t.Errorf("%s is never chosen", f.name)
		}
	}
}

// The short form must stay worth its minute when the table of faults changes: then
// it wants another seed.
func TestShortFormHasManyKinds(t *testing.T) {
	seen := map[string]bool{}
	copies := 0
	for step := 1; step <= shortSteps; step++ {
		c := choose(shortSeed, step)
		seen[c.fault.name] = true
		if c.copied {
			copies++
		}
	}
	if len(seen) < shortSteps-1 || !seen["promotion"] || copies < 4 {
		t.Errorf("seed %d gives %d copies and %v", shortSeed, copies, seen)
	}
}

// one picks from what is there, in its order.
func one[T any](all []T, which int) T { return all[which%len(all)] }

// standby is the one that a choice picks of those that run.
func (w *world) standby(which int) *lab.Node {
	var up []*lab.Node
	for _, n := range w.standbys() {
		if n.Running() {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return one(up, which)
}
