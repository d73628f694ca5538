package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/slotkeeper/slotkeeper/"

type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	Imports    []string
	Deps       []string
	Standard   bool
}

// load lists the project's packages as the go tool sees them, without tests.
func load(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Name,Imports,Deps,Standard", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	return all
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "..", "..")
}

func ours(path string) (string, bool) { return strings.CutPrefix(path, module) }

func within(place string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return place == f || strings.HasPrefix(place, f+"/") })
}

// pure packages decide on plain data: no clock is seen by the go tool, but
// what could do I/O is, wherever in their dependencies it stands.
var pure = []string{"controller/plan", "controller/gate", "controller/doctor", "controller/status", "controller/switchover"}

// mayImport says for each part of the house which other parts it may name.
var mayImport = []struct {
	who  string
	whom []string
}{
	{"cluster/lab", []string{"cluster"}},
	{"cluster/postgres", []string{"cluster"}},
	{"cluster/etcd", []string{"cluster"}},
	{"cluster/static", []string{"cluster"}},
	{"cluster/patroni", []string{"cluster"}},
	{"primary", []string{"cluster", "cluster/postgres"}},
	{"standby", []string{"cluster", "cluster/postgres"}},
	{"controller/plan", []string{"cluster"}},
	{"controller/gate", []string{"cluster", "controller/plan", "controller/status"}},
	{"controller/doctor", []string{"cluster", "controller/plan"}},
	{"controller/status", []string{"cluster", "controller/plan"}},
	{"controller/httpapi", []string{"cluster", "controller/plan", "controller/status"}},
	{"controller/switchover", []string{"cluster", "controller/plan", "controller/status"}},
	{"controller/alert", []string{"cluster", "controller/plan", "controller/status"}},
}

func TestWhoImportsWhom(t *testing.T) {
	for path, p := range load(t) {
		place, mine := ours(path)
		if !mine {
			continue
		}
		for _, imported := range p.Imports {
			other, mine := ours(imported)
			if !mine {
				continue
			}
			if why := forbidden(place, other); why != "" {
				t.Errorf("%s imports %s: %s", place, other, why)
			}
		}
	}
}

func forbidden(place, other string) string {
	if within(other, "test") && !within(place, "test") {
		return "nothing imports test"
	}
	if other == "cluster/lab" && !within(place, "cmd", "test") {
		return "only cmd and test may start servers of their own"
	}
	if within(place, "cmd", "test") {
		return ""
	}
	if within(other, "cmd") {
		return "nothing imports cmd"
	}
	for _, rule := range mayImport {
		if within(place, rule.who) {
			if within(other, rule.who) || slices.Contains(rule.whom, other) {
				return ""
			}
			return rule.who + " may import only " + strings.Join(rule.whom, ", ")
		}
	}
	if place == "controller" && !within(other, "controller") && other != "cluster" {
		return "controller imports cluster and its own children; servers reach it through interfaces"
	}
	if place == "cluster" {
		return "cluster imports the standard library only"
	}
	return ""
}

func TestClusterIsStandardLibraryOnly(t *testing.T) {
	all := load(t)
	for _, dep := range all[module+"cluster"].Deps {
		if !all[dep].Standard {
			t.Errorf("cluster depends on %s", dep)
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	for path, p := range load(t) {
		place, mine := ours(path)
		if !mine || !within(place, pure...) {
			continue
		}
		for _, imported := range p.Imports {
			if slices.Contains([]string{"context", "os", "net", "log", "log/slog", "net/http", "os/exec", "database/sql"}, imported) {
				t.Errorf("%s imports %s: it must stay pure", place, imported)
			}
		}
	}
}

// TestPurePackagesDoNotReadTheClock looks for the calls themselves: package
// time is needed for its types.
func TestPurePackagesDoNotReadTheClock(t *testing.T) {
	for path, p := range load(t) {
		place, mine := ours(path)
		if !mine || !within(place, pure...) {
			continue
		}
		for file, text := range sources(t, p.Dir) {
			for _, call := range []string{"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After("} {
				if strings.Contains(text, call) {
					t.Errorf("%s calls %s): time is an argument", file, call)
				}
			}
		}
	}
}

func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[f] = string(text)
	}
	return texts
}

func TestEachPackageSaysWhatItIsFor(t *testing.T) {
	for path, p := range load(t) {
		place, mine := ours(path)
		if !mine {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil {
			t.Errorf("%s has no doc.go", place)
			continue
		}
		if !strings.HasPrefix(string(text), "// ") {
			t.Errorf("%s: doc.go does not begin with the package's comment", place)
		}
		if slices.Contains([]string{"util", "utils", "common", "types", "helpers"}, p.Name) {
			t.Errorf("%s: a package is called after what it does", place)
		}
	}
}

func TestTopLevel(t *testing.T) {
	allowed := []string{
		"cmd", "controller", "primary", "standby", "cluster", "extension", "deploy", "test",
		"go.mod", "go.sum", "README.md", "Makefile", "CHANGELOG.md", "LICENSE",
	}
	out, err := exec.Command("git", "-C", root(t), "ls-files").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for file := range strings.Lines(string(out)) {
		top, _, _ := strings.Cut(strings.TrimSpace(file), "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s stands at the top level", top)
		}
	}
}
