package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestC10PrimaryBehindItsMirror(t *testing.T) {
	w := settled(t)
	old := *w.servers["a"].slots["app"]
	w.catchUp("app")
	w.replayAll()
	w.turn()
	at := w.verdict("app", "b").Mirror
	w.servers["a"].slots["app"].Confirmed = old.Confirmed
	w.servers["a"].slots["app"].Restart = old.Restart
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if !w.has(CondPrimaryBehindMirror) || w.verdict("app", "b").Mirror != at {
		t.Fatalf("conditions %v, mirror %v", w.conditions, w.verdict("app", "b").Mirror)
	}
	if kinds(w.plan)["apply/b"] {
		t.Errorf("a change was sent: %s", describe(w.plan))
	}
	w.catchUp("app")
	w.replayAll()
	w.turn()
	if w.has(CondPrimaryBehindMirror) {
		t.Errorf("it stays: %v", w.conditions)
	}
}

func TestNothingIsSentWhileThePrimaryIsBehind(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.turn() // kept, not replayed yet
	app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x30080))
	app(w, "a").Restart = cluster.Some(cluster.LSN(0x2ff00))
	w.replayAll()
	w.turn()
	if kinds(w.plan)["apply/b"] {
		t.Fatalf("sent: %s", describe(w.plan))
	}
	w.mustBe(t, "app", "b", Safe, "")
}

func TestRestartAloneGoingBackIsHeld(t *testing.T) {
	w := settled(t)
	app(w, "a").Restart = cluster.Some(cluster.LSN(0x2fe00))
	w.turn()
	if !w.has(CondPrimaryBehindMirror) || len(w.plan.Steps) != 0 {
		t.Fatalf("conditions %v, %s", w.conditions, describe(w.plan))
	}
}

func TestForgetfulLeaderBelievesItsMirrors(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x30f00)) // a crash
	w.memory = Memory{Epoch: 11, Store: store}
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	if !w.has(CondPrimaryBehindMirror) {
		t.Errorf("conditions %v", w.conditions)
	}
	if n := w.memory.Slots["app"]; n.HighestF != 0x31000 || n.Before != 0 || len(w.memory.Kept["app"]) != 0 {
		t.Errorf("the slot was at %s at most, before this timeline at %s; %d reads are kept", n.HighestF, n.Before, len(w.memory.Kept["app"]))
	}
}

// The same where the mirrors were last moved on an earlier timeline: what the slot
// was there does not hold it back on this one.
func TestForgetfulLeaderAndMirrorsOfAnEarlierTimeline(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.replayAll()
	w.turn()
	app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x30f00))
	app(w, "b").Marker.Timeline, app(w, "c").Marker.Timeline = 0, 0
	w.memory = Memory{Epoch: 11, Store: store}
	w.turn()
	if n := w.memory.Slots["app"]; n.HighestF != 0x30f00 || n.Before != 0x31000 || len(w.memory.Kept["app"]) != 1 {
		t.Errorf("the slot was at %s at most, before this timeline at %s; %d reads are kept", n.HighestF, n.Before, len(w.memory.Kept["app"]))
	}
}
