package plan

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// situation is one row of a table: what is done to a settled world in which slot
// app is mirrored on b and c, or to a new one.
type situation struct {
	name  string
	fresh bool // the slot is new: nothing is mirrored
	do    func(w *world)
	turns int // cycles after it, 0 for one
}

func (s situation) run() *world {
	w := newWorld("b", "c")
	if s.fresh {
		w.turns(2)
	}
	w.createSlot("app")
	if !s.fresh {
		w.turns(3)
	}
	if s.do != nil {
		s.do(w)
	}
	w.turns(max(s.turns, 1))
	return w
}

// show prints a row: the facts, what is done about them, what is said.
func (s situation) show(b *bytes.Buffer, w *world) {
	fmt.Fprintf(b, "\n%s\n", s.name)
	for _, step := range w.plan.Steps {
		fmt.Fprintf(b, "  does %s: %s\n", step.ID, answers(w, step))
	}
	for _, node := range []string{"b", "c"} {
		v := w.verdict("app", node)
		switch {
		case v.State == "":
			continue
		case node == "c" && v.State == Safe:
			continue
		}
		fmt.Fprintf(b, "  on %s: %s", node, v.State)
		if v.Reason != "" {
			fmt.Fprintf(b, "(%s)", v.Reason)
		}
		fmt.Fprintf(b, "  %s\n", v.Message)
		if v.Hint != "" && node == "b" {
			fmt.Fprintf(b, "    hint: %s\n", v.Hint)
		}
	}
	for _, c := range w.conditions {
		fmt.Fprintf(b, "  %s: %s  %s\n", c.Severity, c.Code, c.Message)
		fmt.Fprintf(b, "    hint: %s\n", c.Hint)
	}
}

// answers is what came of a step, by slot.
func answers(w *world, step Step) string {
	for _, out := range w.steps {
		if out.StepID != step.ID {
			continue
		}
		if out.Skipped != "" || out.Err != "" {
			return sentence(out.Skipped, out.Err)
		}
		var said []string
		for _, row := range out.Outcomes {
			said = append(said, strings.TrimSpace(row.Name+" "+string(row.Code)))
		}
		return strings.Join(said, ", ")
	}
	return "not done"
}

func TestVerdictTable(t *testing.T) {
	golden(t, "verdicts.golden", "What is said of slot app on standby b, and of c where that is not SAFE.", situations)
}
func TestConditionTable(t *testing.T) {
	golden(t, "conditions.golden", "What deserves a look beside the verdicts.", conditionSituations)
}

func golden(t *testing.T, file, title string, rows []situation) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n# Facts, what is done about them, what is said. Made by: go test ./controller/plan -run Table -update\n", title)
	for _, s := range rows {
		s.show(&b, s.run())
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
}

// elsewhere are the codes that no rule of this package gives, and the file of
// the repository where a test has them given.
var elsewhere = map[string]string{
	CondControllerAbsent: "controller/doctor/doctor_test.go", // nobody decides then
}

// Every code of the vocabulary, wherever in this package it is declared, has a
// row that gives it. The subtest has the code's name.
func TestCodes(t *testing.T) {
	given := map[string]bool{}
	for _, s := range append(append([]situation(nil), situations...), conditionSituations...) {
		w := s.run()
		for _, v := range w.verdicts {
			given[string(v.Reason)] = true
		}
		for _, c := range w.conditions {
			given[c.Code] = true
		}
	}
	for _, code := range vocabulary(t) {
		t.Run(code, func(t *testing.T) {
			if file, ok := elsewhere[code]; ok {
				text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
				if err != nil || !strings.Contains(string(text), code) && !strings.Contains(string(text), "CodeControllerAbsent") {
					t.Errorf("%s does not speak of it: %v", file, err)
				}
				return
			}
			if !given[code] {
				t.Error("no row of the tables gives it")
			}
		})
	}
}

// vocabulary is the values of all constants whose names begin with Reason or Cond.
func vocabulary(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") && !strings.HasPrefix(spec.Names[0].Name, "Cond") {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				codes = append(codes, strings.Trim(lit.Value, "\""))
			}
			return true
		})
	}
	if len(codes) < 60 {
		t.Fatalf("only %d codes were found: %q", len(codes), codes)
	}
	return slices.Compact(slices.Sorted(slices.Values(codes)))
}

// What DESIGN promises beside them.
func TestCodesHaveWhatIsPromised(t *testing.T) {
	codes := vocabulary(t)
	for _, code := range []string{
		"wal_removed", "rows_removed", "wal_level_insufficient", "idle_timeout", "unreachable", "stale", "no_privilege", "extension_unavailable",
		"wrong_endpoint", "timeline_mismatch", "not_ours", "in_use", "wal_level", "plugin_missing", "no_free_slot", "patroni_will_drop",
		"two_phase_unsupported", "protection_gap", "hold_not_saved", "slot_missing", "consumer_ahead", "mirror_ahead", "fenced",
		"new", "receive_lag", "replay_lag", "wal_missing", "bad_snapshot", "no_consistent_point", "old_session", "database_gone", "busy", "primary_behind_mirror", "lag",
		"no_leader", "split_brain", "paused", "etcd_unreachable", "foreign_epoch", "no_safe_candidate", "restart_lsn_stuck", "hold_age",
		"hold_missing", "feedback_off", "physical_slot_missing", "physical_slot_invalidated", "xmin_pinned", "orphan_physical_slot", "standby_gate_stalled",
		"slot_inactive_after_failover", "slot_recreated", "mirror_replaced", "timeline_reset", "failover_flag_pending", "controller_absent",
	} { // etcd_space is the ledger's
		if !slices.Contains(codes, code) {
			t.Errorf("there is no code %q", code)
		}
	}
}
