package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// DefaultMajor is the major version of PostgreSQL that the lab looks for when
// neither it nor the environment is told otherwise.
const DefaultMajor = 15

// The majors that slotkeeper supports.
const (
	OldestMajor = 13
	NewestMajor = 19
)

// Major gives the major version of PostgreSQL to use: the environment variable
// SLOTKEEPER_MAJOR, else DefaultMajor.
func Major() (int, error) {
	text := os.Getenv("SLOTKEEPER_MAJOR")
	if text == "" {
		return DefaultMajor, nil
	}
	major, err := strconv.Atoi(text)
	if err != nil || major < OldestMajor || major > NewestMajor {
		return 0, fmt.Errorf("SLOTKEEPER_MAJOR=%s: want a major version of PostgreSQL from %d to %d", text, OldestMajor, NewestMajor)
	}
	return major, nil
}

// FindDefaultPG is FindPG for Major.
func FindDefaultPG() (string, error) {
	major, err := Major()
	if err != nil {
		return "", err
	}
	return FindPG(major)
}

// ErrNoPG says that no server of the wanted major version is installed.
var ErrNoPG = errors.New("no PostgreSQL server found")

// FindPG gives the folder with the programs of a PostgreSQL server of one major
// version. It looks at the environment variable SLOTKEEPER_PG<major>, then at
// Debian's place, then at the pg_config in the path, then where test/servers.sh
// unpacks servers. A folder that the variable names and that is not one of that
// major is an error, never passed over.
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
	candidates = append(candidates, unpacked(major)...)
	for _, dir := range candidates {
		if checkMajor(dir, major) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: version %d is not in %s; install it (test/setup.sh and test/servers.sh %d do) or set %s to the folder that holds initdb and postgres",
		ErrNoPG, major, strings.Join(candidates, " nor in "), major, variable)
}

// unpacked gives the places where test/servers.sh may have put a server: in
// SLOTKEEPER_CACHE, or in .cache of this folder or of one above it.
func unpacked(major int) []string {
	var dirs []string
	for _, cache := range caches() {
		bin := filepath.Join(cache, "postgresql", strconv.Itoa(major), "bin")
		if resolved, err := filepath.EvalSymlinks(bin); err == nil {
			dirs = append(dirs, resolved)
		}
	}
	return dirs
}

// caches gives the folders below which test/servers.sh may have unpacked something.
func caches() []string {
	if cache := os.Getenv("SLOTKEEPER_CACHE"); cache != "" {
		return []string{cache}
	}
	var caches []string
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	for ; ; dir = filepath.Dir(dir) {
		caches = append(caches, filepath.Join(dir, ".cache"))
		if dir == filepath.Dir(dir) {
			return caches
		}
	}
}

// checkMajor asks the server program itself: a folder's name proves nothing.
func checkMajor(dir string, major int) error {
	for _, program := range []string{"postgres", "initdb", "pg_basebackup"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return fmt.Errorf("%w: %w", ErrNoPG, err)
		}
	}
	found, err := majorOf(dir)
	if err != nil {
		return err
	}
	if found != major {
		return fmt.Errorf("%w: it is version %d, want %d", ErrNoPG, found, major)
	}
	return nil
}

// majorOf asks the server program for its major version.
func majorOf(dir string) (int, error) {
	program := filepath.Join(dir, "postgres")
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "postgres (PostgreSQL) ")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	major, err := strconv.Atoi(version[:end])
	if err != nil {
		return 0, fmt.Errorf("asking %s for its version: it says %q", program, version)
	}
	return major, nil
}
