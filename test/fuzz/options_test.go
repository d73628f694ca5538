package fuzz

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// number reads a count from the environment; short is for where there is none.
func number(t *testing.T, variable string, short int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a number above 0", variable, text)
	}
	return n
}

// calls is how many hostile calls are made.
func calls(t *testing.T) int { return number(t, "SLOTKEEPER_FUZZ_CALLS", 2000) }

// rounds is how often something is killed, promoted or overtaken.
func rounds(t *testing.T, short int) int { return number(t, "SLOTKEEPER_FUZZ_ROUNDS", short) }

// seed makes the choices of a test; it is logged, and taken from the environment
// to repeat them. How servers and sessions interleave is theirs.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(number(t, "SLOTKEEPER_FUZZ_SEED", int(time.Now().UnixNano()&0x7fffffff)+1))
	t.Logf("SLOTKEEPER_FUZZ_SEED=%d", s)
	return s
}

func source(seed, worker uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, worker)) }
