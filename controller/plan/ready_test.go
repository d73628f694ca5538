package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestReady(t *testing.T) {
	step := Step{ID: "apply/b/held", Kind: StepApply, Needs: []string{"fence/b", "lower/a"}, Changes: []cluster.Change{{Name: "app"}, {Name: "more"}}}
	row := func(name string, code cluster.Code) []cluster.Outcome {
		return []cluster.Outcome{{Name: name, Code: code}}
	}
	for _, tc := range []struct {
		name  string
		fence StepOutcome
		lower *StepOutcome
		left  string
		why   string
	}{
		{"all well", StepOutcome{Outcomes: row("", "raised")}, &StepOutcome{Outcomes: row("app", cluster.CodeHeld)}, "app more", ""},
		{"a need did not run", StepOutcome{}, nil, "", "lower/a did not run"},
		{"a need failed", StepOutcome{}, &StepOutcome{Err: "timeout"}, "", "lower/a failed: timeout"},
		{"a need was skipped", StepOutcome{}, &StepOutcome{Skipped: "no lease"}, "", "lower/a was skipped: no lease"},
		{"the fence was refused", StepOutcome{Outcomes: row(cluster.HoldName, cluster.CodeFenced)}, &StepOutcome{}, "", "fence/b was refused: fenced"},
		{"one slot was refused", StepOutcome{}, &StepOutcome{Outcomes: row("app", cluster.CodeNotPinned)}, "more", ""},
		{"what was kept is refused, the witnessed is held", StepOutcome{}, &StepOutcome{Outcomes: append(row(cluster.HoldName, cluster.CodeNotPinned), row("app", cluster.CodeHeld)...)}, "app more", ""},
		{"WAL that is gone", StepOutcome{}, &StepOutcome{Outcomes: row(cluster.WALHoldName, cluster.CodeWALMissing)}, "app more", ""},
		{"all were refused", StepOutcome{}, &StepOutcome{Outcomes: append(row("app", cluster.CodeNotPinned), row("more", cluster.CodeSaveFailed)...)}, "", "refused for each"},
	} {
		done := map[string]StepOutcome{"fence/b": tc.fence}
		if tc.lower != nil {
			done["lower/a"] = *tc.lower
		}
		ready, why := Ready(step, done)
		var left []string
		for _, ch := range ready.Changes {
			left = append(left, ch.Name)
		}
		if tc.why == "" && (why != "" || strings.Join(left, " ") != tc.left) || !strings.Contains(why, tc.why) || tc.why != "" && why == "" {
			t.Errorf("%s: left %v, why %q", tc.name, left, why)
		}
	}
}

func TestOneRefusedWantStopsOnlyItsSlot(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	w.createSlot("more")
	w.behind = func(s Step) {
		if s.Stage == StageLowerPrimary { // more moves on between the read and the call
			x := cluster.Some(w.servers["a"].slots["more"].CatalogXmin.V + 5)
			w.servers["a"].slots["more"].CatalogXmin, w.servers["a"].slots["more"].EffectiveCatalogXmin = x, x
		}
	}
	w.servers["a"].slots["app"].CatalogXmin = cluster.Some(cluster.XID(850))
	w.servers["a"].slots["app"].EffectiveCatalogXmin = cluster.Some(cluster.XID(850))
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "more", "b", Pending, ReasonBusy)
	w.behind = nil
	w.turns(2)
	w.mustBe(t, "more", "b", Safe, "")
}

// A refused slot is taken out of what needs its hold, and of nothing else.
func TestOnlyChangesAndStampsArePruned(t *testing.T) {
	done := map[string]StepOutcome{"lower/b": {StepID: "lower/b", Outcomes: []cluster.Outcome{{Name: "app", Code: cluster.CodeNotPinned}, {Name: "more", Code: cluster.CodeHeld}}}}
	for kind, want := range map[StepKind]string{StepApply: "more", StepStamp: "more", StepDrop: "app more", StepMark: "app more"} {
		s := Step{ID: "x", Kind: kind, Needs: []string{"lower/b"}, Names: []string{"app", "more"}}
		if kind == StepApply {
			s.Names, s.Changes = nil, []cluster.Change{{Name: "app"}, {Name: "more"}}
		}
		ready, why := Ready(s, done)
		left := ready.Names
		for _, ch := range ready.Changes {
			left = append(left, ch.Name)
		}
		if got := strings.Join(left, " "); got != want || why != "" {
			t.Errorf("%s: %q is left, %q", kind, got, why)
		}
	}
}
