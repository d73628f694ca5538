package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// A mirror whose plugin may be used no longer would fail its consumer.
func TestPluginWithdrawnFromAMirror(t *testing.T) {
	w := settled(t)
	answer(cluster.CodePluginMissing, `"wal2json" is not among output_plugin_libraries`)(w)
	w.catchUp("app")
	w.replayAll()
	w.turns(3)
	w.mustBe(t, "app", "b", Unsafe, ReasonPluginMissing)
	w.mustBe(t, "app", "c", Safe, "")
	w.answer = nil
	w.now = w.now.Add(DefaultInterval)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
}
