package plan

import "testing"

func TestWhatTheCycleCatchesUpWithIsNoLag(t *testing.T) {
	w := settled(t)
	w.write(100 << 20)
	app(w, "a").Confirmed = w.primary().node.Insert
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}
