package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// victim is this test binary, told to hold a lab of its own in dir.
func victim(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheLab$")
	cmd.Env = append(os.Environ(), "SLOTKEEPER_LAB_VICTIM="+dir)
	return cmd
}

// readyServer gives the postmaster's id once the server of a lab below dir takes connections.
func readyServer(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "slotkeeper-lab-*", "a", "postmaster.pid"))
	if err != nil || len(files) == 0 {
		return 0, err
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), "ready") {
		return 0, nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}
