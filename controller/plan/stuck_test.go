package plan

import (
	"testing"
	"time"
)

func TestStuckRestartAndLag(t *testing.T) {
	w := settled(t)
	w.write(100 << 20)
	app(w, "a").Confirmed = w.primary().node.Insert
	w.receive("b", w.primary().node.Insert.V)
	w.receive("c", w.primary().node.Insert.V)
	w.turn()
	w.now = w.now.Add(6 * time.Minute)
	w.turn()
	if !w.has(CondRestartStuck) || !w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}
