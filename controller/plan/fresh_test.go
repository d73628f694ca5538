package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// D21, for a leader that remembers nothing: what the other nodes are marked with
// says that the new primary's mirror was left behind.
func TestD21LeaderThatRemembersNothing(t *testing.T) {
	for name, gap := range map[string]bool{"left behind": true, "held throughout": false} {
		w := settled(t)
		if gap {
			delete(w.servers["a"].slots, cluster.HoldName)
			w.refuse = func(s Step) string {
				if s.Node == "b" {
					return "connection reset"
				}
				return ""
			}
			w.turn()
			w.refuse = nil
		}
		w.promote("b")
		w.memory = Memory{Epoch: 12, Store: store}
		w.turns(3)
		if gone := w.servers["b"].slots["app"] == nil; gone != gap || w.has(CondSlotMissing) != gap {
			t.Errorf("%s: it is gone: %v, conditions %v", name, gone, w.conditions)
		}
	}
}
