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

// binDir is the folder of that server's programs.
func binDir(t *testing.T) string {
	t.Helper()
	dir, err := lab.FindPG(Major(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
