package harness

import (
	"os"
	"strconv"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// MajorVariable names the environment variable that says on which major version
// of PostgreSQL the tests run.
const MajorVariable = "SLOTKEEPER_TEST_MAJOR"

// Major is the major version of PostgreSQL that the tests run on.
func Major(t *testing.T) int {
	t.Helper()
	text := os.Getenv(MajorVariable)
	if text == "" {
		return lab.DefaultMajor
	}
	major, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("reading %s: %v", MajorVariable, err)
	}
	return major
}

// ServerSync is the major version for what only PostgreSQL 17 and later have: the
// one that the tests run on, where it is one of them, else 17.
func ServerSync(t *testing.T) int {
	t.Helper()
	return max(Major(t), 17)
}

// TwoPhase is the same for two-phase slots, which 14 and later have; there is no
// server of 14 to test on.
func TwoPhase(t *testing.T) int {
	t.Helper()
	return max(Major(t), 15)
}

// binDir is the folder of a server's programs, 0 for the major that the tests run on.
func binDir(t *testing.T, major int) string {
	t.Helper()
	if major == 0 {
		major = Major(t)
	}
	dir, err := lab.FindPG(major)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
