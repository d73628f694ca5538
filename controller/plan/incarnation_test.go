package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestC11RecreatedSlotIsReplacedWhole(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	w.createSlot("app")
	s := w.servers["a"].slots["app"]
	s.Plugin, s.Confirmed, s.Restart = "test_decoding", cluster.Some(cluster.LSN(0x30000)), cluster.Some(cluster.LSN(0x2ff00))
	w.turn()
	if !w.has(CondSlotRecreated) || !w.has(CondMirrorReplaced) {
		t.Fatalf("conditions %v", w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
	if m := w.servers["b"].slots["app"]; m.Plugin != "test_decoding" || m.Confirmed.V != 0x30000 {
		t.Errorf("the mirror is %+v", m)
	}
}

func TestReadsOfTheOldIncarnationAreNotApplied(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	end := w.primary().node.Insert.V
	w.turn() // kept, not replayed
	w.write(0x1000)
	w.createSlot("app")
	app(w, "a").Plugin = "test_decoding"
	w.turn()
	w.replay("b", end)
	w.turn()
	if m := app(w, "b"); m != nil && m.Plugin == "pgoutput" && m.Confirmed.V == end {
		t.Fatalf("moved to the old one's position: %+v", m)
	}
	if kinds(w.plan)["apply/b"] {
		t.Fatalf("sent: %s", describe(w.plan))
	}
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if m := app(w, "b"); m.Plugin != "test_decoding" {
		t.Errorf("%+v", m)
	}
}

// ALTER DATABASE ... RENAME takes the slots along; without birth times another
// database is all that tells a new slot in the old one's inode.
func TestSlotOfARenamedDatabaseIsTheSame(t *testing.T) {
	for _, born := range []bool{true, false} {
		w := settled(t)
		note := w.memory.Slots["app"]
		if !born {
			app(w, "a").Incarnation.Birth = cluster.None[time.Time]()
			note.Incarnation.Birth = cluster.None[time.Time]()
			w.memory.Slots["app"] = note
		}
		app(w, "a").Database = "bazaar"
		w.turn()
		if w.has(CondSlotRecreated) == born {
			t.Errorf("birth times %t: conditions %v", born, w.conditions)
		}
		if kept := w.memory.Slots["app"]; born && (kept.Database != "bazaar" || kept.Last != note.Last) {
			t.Errorf("what is remembered of it is %+v", kept)
		}
	}
}

// It may be renamed in the last moment before its primary dies: the mirrors are renamed
// as well, and know whose they are.
func TestDatabaseRenamedBeforeAPromotion(t *testing.T) {
	for _, born := range []bool{true, false} {
		w := settled(t)
		note := w.memory.Slots["app"]
		if !born {
			note.Incarnation.Birth = cluster.None[time.Time]()
			w.memory.Slots["app"] = note
			for _, node := range []string{"b", "c"} {
				app(w, node).Marker.Source.Birth = cluster.None[time.Time]()
			}
		}
		for _, node := range []string{"b", "c"} {
			app(w, node).Database = "bazaar"
		}
		made := app(w, "c").Incarnation
		w.promote("b")
		w.turn()
		if w.has(CondSlotRecreated) == born {
			t.Errorf("birth times %t: conditions %v", born, w.conditions)
		}
		w.turns(2)
		w.mustBe(t, "app", "c", Safe, "")
		if kept := w.memory.Slots["app"]; born && (kept.Database != "bazaar" || kept.Before != note.HighestF || app(w, "c").Incarnation != made) {
			t.Errorf("what is remembered of it is %+v", kept)
		}
	}
}
