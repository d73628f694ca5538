package plan

import "github.com/slotkeeper/slotkeeper/cluster"

func pluginRule(_ *cycle, pr *pair) *finding {
	if pr.note.Tried.Code != cluster.CodePluginMissing {
		return nil
	}
	return triedFinding(pr)
}
