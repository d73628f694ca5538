package plan

import (
	"fmt"
	"strings"
	"testing"
)

// What each standby would lose is named, the first of many, whatever order they come in.
func TestNoCandidateNamesWhatIsLost(t *testing.T) {
	lost := func(standby string, n int) []Verdict {
		var all []Verdict
		for i := range n {
			all = append(all, Verdict{Slot: fmt.Sprintf("s%d", n-i), Standby: standby, State: Unsafe, Reason: ReasonNotOurs})
		}
		return all
	}
	for n, want := range map[int]string{3: "s1 (not_ours), s2 (not_ours), s3 (not_ours)", 4: "s3 (not_ours), and 1 more"} {
		if got, _ := noCandidate(lost("b", n), 1); !strings.HasSuffix(got.Message, want) {
			t.Errorf("of %d: %q", n, got.Message)
		}
	}
	if got, ok := noCandidate(nil, 1); !ok || got.Message != "none of 0 standbys has all slots SAFE" {
		t.Errorf("a slot and no standby: %t %q", ok, got.Message)
	}
	if _, ok := noCandidate(nil, 0); ok {
		t.Error("there is no slot to lose")
	}
	all := append(lost("b", 5), lost("c", 1)...)
	all = append(all, Verdict{Slot: "s9", Standby: "c", State: Safe})
	got, ok := noCandidate(all, 1)
	want := "none of 2 standbys has all slots SAFE; a failover to b would lose s1 (not_ours), s2 (not_ours), s3 (not_ours), and 2 more; a failover to c would lose s1 (not_ours)"
	if !ok || got.Message != want {
		t.Errorf("%t %q, want %q", ok, got.Message, want)
	}
	for _, name := range []string{"d", "e"} {
		all = append(all, lost(name, 1)...)
	}
	if got, _ := noCandidate(all, 1); !strings.HasSuffix(got.Message, "; and 1 more") {
		t.Errorf("%q", got.Message)
	}
	if _, ok := noCandidate(append(all, Verdict{Slot: "s1", Standby: "f", State: Safe}), 1); ok {
		t.Error("f would lose nothing")
	}
}
