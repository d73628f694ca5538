package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DefaultMajor is the major version of PostgreSQL that the lab looks for when
// it is not told otherwise.
const DefaultMajor = 15

// ErrNoPG says that no server of the wanted major version is installed.
var ErrNoPG = errors.New("no PostgreSQL server found")

// FindPG gives the folder with the programs of a PostgreSQL server of one major
// version. It looks at the environment variable SLOTKEEPER_PG<major>, then at
// Debian's place, then at the pg_config in the path. A folder that the variable
// names and that is not one of that major is an error, never passed over.
func FindPG(major int) (string, error) {
	variable := fmt.Sprintf("SLOTKEEPER_PG%d", major)
	if dir := os.Getenv(variable); dir != "" {
		if err := checkMajor(dir, major); err != nil {
			return "", fmt.Errorf("using %s=%s: %w", variable, dir, err)
		}
		return dir, nil
	}
	candidates := []string{fmt.Sprintf("/usr/lib/postgresql/%d/bin", major)}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	for _, dir := range candidates {
		if checkMajor(dir, major) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: version %d is not in %s; install it (test/setup.sh does) or set %s to the folder that holds initdb and postgres",
		ErrNoPG, major, strings.Join(candidates, " nor in "), variable)
}

// checkMajor asks the server program itself: a folder's name proves nothing.
func checkMajor(dir string, major int) error {
	for _, program := range []string{"postgres", "initdb", "pg_basebackup"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return fmt.Errorf("%w: %w", ErrNoPG, err)
		}
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", filepath.Join(dir, "postgres"), err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "postgres (PostgreSQL) ")
	want := fmt.Sprint(major)
	if rest, ok := strings.CutPrefix(version, want); !ok || (rest != "" && rest[0] >= '0' && rest[0] <= '9') {
		return fmt.Errorf("%w: it is version %s, want %d", ErrNoPG, version, major)
	}
	return nil
}
