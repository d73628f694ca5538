package plan

import (
	"slices"
	"strings"
	"testing"
)

// A fence of another etcd does not go away by itself: the hint says how it does.
func TestAForeignFenceHasAWayOut(t *testing.T) {
	w := settled(t)
	for _, s := range w.servers {
		s.node.Fence.V.Store = "gone"
	}
	w.turn()
	hints := []string{w.conditions[0].Hint}
	for _, v := range w.verdicts {
		hints = append(hints, v.Hint)
	}
	for _, hint := range hints {
		if !strings.Contains(hint, "--take-over") {
			t.Errorf("the hint is %q", hint)
		}
	}
	if !w.has(CondForeignEpoch) || len(w.verdicts) != 2 {
		t.Errorf("the scene is not set: %v %v", w.conditions, w.verdicts)
	}
}

// What another scope has made is never taken over, so nobody is told to try, nor to
// drop what its consumers may need.
func TestAnotherScopeIsNotTakenOver(t *testing.T) {
	w := settled(t)
	w.policy.Scope = "other"
	w.turn()
	hints := []string{}
	for _, cond := range w.conditions {
		if cond.Code == CondForeignEpoch {
			hints = append(hints, cond.Hint)
		}
	}
	for _, v := range w.verdicts {
		hints = append(hints, v.Hint)
		if v.Reason != ReasonNotOurs || !strings.Contains(v.Message, `that the slotkeeper of scope "shop" made`) {
			t.Errorf("of %s on %s it is said: %s %s", v.Slot, v.Standby, v.Reason, v.Message)
		}
	}
	w.createSlot("new") // which b has not
	w.turn()
	w.mustBe(t, "new", "b", Unsafe, ReasonFenced)
	hints = append(hints, w.verdict("new", "b").Hint)
	for _, hint := range hints {
		if strings.Contains(hint, "--take-over") || strings.Contains(hint, "drop") || !strings.Contains(hint, "correct scope") {
			t.Errorf("the hint is %q", hint)
		}
	}
	if len(hints) != 6 {
		t.Errorf("the scene is not set: %q", hints)
	}
}

// What is said names the nodes that refuse, and no other: the primary too, and no
// standby whose fence nobody has seen.
func TestForeignFencesAreNamedByNode(t *testing.T) {
	w := settled(t)
	for _, name := range []string{"a", "c"} {
		w.servers[name].node.Fence.V.Store = "gone"
	}
	w.turn()
	if told := w.subjects(CondForeignEpoch); told != "a c" {
		t.Errorf("it names %s", told)
	}
	w.fail = map[string]Fact[NodeRead]{"c": {At: w.now, Err: "timeout", Reason: ReasonUnreachable, Value: w.servers["c"].read()}}
	w.turn()
	if told := w.subjects(CondForeignEpoch); told != "a" {
		t.Errorf("while c does not answer it names %s", told)
	}
}

// subjects are those of the conditions of a code.
func (w *world) subjects(code string) string {
	var all []string
	for _, cond := range w.conditions {
		if cond.Code == code {
			all = append(all, cond.Subject)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
