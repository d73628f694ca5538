package plan

import "testing"

func TestAbsenceIsCountedByReadAndTimeline(t *testing.T) {
	w := settled(t)
	delete(w.servers["a"].slots, "app")
	w.turn()
	w.now = w.now.Add(-20e6) // the same read, shown twice
	w.turn()
	if kinds(w.plan)["drop/b"] {
		t.Fatal("one read counted twice")
	}
	w.promote("b")
	delete(w.servers["b"].slots, "app")
	w.turn()
	if kinds(w.plan)["drop/c"] {
		t.Fatal("reads of two timelines are not two reads")
	}
	w.turn()
	if !kinds(w.plan)["drop/c"] {
		t.Fatal("not dropped")
	}
}
