package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestPassing(t *testing.T) {
	for code, want := range map[cluster.Code]bool{
		cluster.CodeRetry: true, cluster.CodeBusyFence: true, cluster.CodeNotPinned: true,
		cluster.CodeBadSnapshot: false, cluster.CodeWALMissing: false, cluster.CodeNoFreeSlot: false, cluster.CodeMoved: false,
	} {
		if got := passing(code); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
}
