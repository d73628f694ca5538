package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Ready gives the step as it may run now that the steps before it have
// outcomes. A need that failed as a whole stops it: why says which. A need that
// refused only some slots (their rows are not held) takes only those out of
// it: one slot never stops another.
func Ready(s Step, done map[string]StepOutcome) (ready Step, why string) {
	refused := map[string]cluster.Code{}
	for _, need := range s.Needs {
		o, ok := done[need]
		switch {
		case !ok:
			return s, fmt.Sprintf("step %s did not run", need)
		case o.Err != "":
			return s, fmt.Sprintf("step %s failed: %s", need, o.Err)
		case o.Skipped != "":
			return s, fmt.Sprintf("step %s was skipped: %s", need, o.Skipped)
		}
		for _, row := range o.Outcomes {
			if !refuses(row.Code) {
				continue
			}
			if row.Name == cluster.HoldName && row.Code != cluster.CodeNotPinned {
				return s, fmt.Sprintf("step %s was refused: %s", need, row.Code)
			}
			refused[row.Name] = row.Code
		}
	}
	return prune(s, refused)
}

// refuses reports whether a row of a fence, mark or hold step stops what needs it.
func refuses(code cluster.Code) bool {
	switch code {
	case cluster.CodeHeld, cluster.CodeMarked, cluster.CodeUnchanged, cluster.CodeMoved,
		cluster.CodeMade, cluster.CodeReplaced, cluster.CodeDropped:
		return false
	}
	return true
}

func prune(s Step, refused map[string]cluster.Code) (Step, string) {
	if len(refused) == 0 || (s.Kind != StepApply && s.Kind != StepStamp) {
		return s, ""
	}
	before := len(s.Changes) + len(s.Names)
	var changes []cluster.Change
	for _, c := range s.Changes {
		if _, bad := refused[c.Name]; !bad {
			changes = append(changes, c)
		}
	}
	var names []string
	for _, n := range s.Names {
		if _, bad := refused[n]; !bad {
			names = append(names, n)
		}
	}
	s.Changes, s.Names = changes, names
	if before > 0 && len(changes)+len(names) == 0 {
		return s, "the hold was refused for each of its slots"
	}
	return s, ""
}
