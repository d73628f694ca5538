package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// The short form, in each run of the tests: few steps, and a seed that has one of
// each kind of fault among them.
const (
	shortSeed  = 262481
	shortSteps = 6
)

const stepsOfARound = 10

// A violation is an error of the test; the folder of the servers, and of the copy
// that shows it, is left then.
func TestChaos(t *testing.T) {
	minutes, seed := number(t, "SLOTKEEPER_CHAOS_MINUTES"), number(t, "SLOTKEEPER_CHAOS_SEED")
	steps := shortSteps
	if minutes > 0 {
		steps = stepsOfARound
	} else if seed == 0 {
		seed = shortSeed
	}
	if seed == 0 {
		seed = 1 + rand.IntN(1<<31)
	}
	w := newWorld(t, uint64(seed))
	defer w.close()
	for round := 1; ; round++ {
		w.round(round, steps)
		if t.Failed() || w.report.faulty >= time.Duration(minutes)*time.Minute {
			break
		}
	}
	w.leave()
}

// number reads a number above 0 from the environment, 0 where there is none.
func number(t *testing.T, variable string) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a number above 0", variable, text)
	}
	return n
}

// round is some faults on a healthy cluster, and the cluster's recovery from them.
func (w *world) round(round, steps int) {
	w.roundNo = round
	w.begin()
	for range steps {
		w.step++
		c := w.choose(w.step)
		begun := time.Now()
		w.say("%s", c)
		w.keepUp()
		w.do(c)
		took := time.Since(begun)
		w.report.steps[c.fault.name]++
		w.report.faulty += took
		w.say("  took %s", took.Round(100*time.Millisecond))
		if w.tooMany() {
			return
		}
	}
	w.recover()
	w.account()
	w.report.rounds++
}

// say notes what happens, with the seconds since the beginning.
func (w *world) say(format string, args ...any) {
	w.t.Logf("%7.1fs step %d: %s", time.Since(w.begun).Seconds(), w.step, fmt.Sprintf(format, args...))
}
