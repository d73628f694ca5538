package plan

import "fmt"

func mirrorReplaced(node, slot string) Condition {
	return Condition{Code: CondMirrorReplaced, Subject: slot + "/" + node, Severity: Info,
		Message: fmt.Sprintf("the mirror of %s on %s was replaced: it was of an earlier incarnation or timeline, or of before two-phase was turned on or off", slot, node),
		Hint:    "nothing is to be done"}
}
