package plan

import "fmt"

func inUseRule(_ *cycle, pr *pair) *finding {
	if pr.mirror == nil || pr.mirror.ActivePID == 0 {
		return nil
	}
	return &finding{Unsafe, ReasonInUse, fmt.Sprintf("process %d on %s is using the mirror of %s, which cannot be moved meanwhile", pr.mirror.ActivePID, pr.node, pr.t.slot.Name),
		"consumers belong on the primary; disconnect this one"}
}
