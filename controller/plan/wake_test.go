package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// C20: what one apply may walk is for all its slots together.
func TestOneApplyWalksSoMuchHoweverManySlots(t *testing.T) {
	p := Policy{}.withDefaults()
	for slots, want := range map[int]int64{0: DefaultMaxWalk, 1: DefaultMaxWalk, 20: DefaultMaxWalk / 20, 1000: leastWalk} {
		changes := make([]cluster.Change, slots)
		if got := p.walkShare(changes); got != want {
			t.Errorf("%d slots walk %d bytes each, want %d", slots, got, want)
		}
		changes = append(changes, cluster.Change{Snapshot: cluster.Some([]byte{1})}) // is not walked
		if got := p.walkShare(changes); got != want {
			t.Errorf("%d slots beside one with a file walk %d bytes each, want %d", slots, got, want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	pl := Plan{Again: true, Steps: []Step{{ID: "fence/b", Kind: StepFence}, {ID: "apply/b", Kind: StepApply}, {ID: "drop/b", Kind: StepDrop}}}
	for _, c := range []struct {
		name string
		out  StepOutcome
		want bool
	}{
		{"nothing was done", StepOutcome{StepID: "apply/b", Skipped: "x"}, false},
		{"moved", StepOutcome{StepID: "apply/b", Outcomes: []cluster.Outcome{{Code: cluster.CodeMoved}}}, false},
		{"refused", StepOutcome{StepID: "apply/b", Outcomes: []cluster.Outcome{{Code: cluster.CodeRetry}}}, false},
		{"failed", StepOutcome{StepID: "apply/b", Err: "x"}, false},
		{"cut", StepOutcome{StepID: "apply/b", Cut: true, Outcomes: []cluster.Outcome{{Code: cluster.CodeMade}}}, true},
		{"a walk goes on", StepOutcome{StepID: "apply/b", Outcomes: []cluster.Outcome{{Code: cluster.CodeRetry, Resume: "r"}}}, true},
		{"dropped", StepOutcome{StepID: "drop/b", Outcomes: []cluster.Outcome{{Code: cluster.CodeDropped}}}, true},
		{"a walk of a step that applies nothing", StepOutcome{StepID: "fence/b", Outcomes: []cluster.Outcome{{Resume: "r"}}}, false},
		{"a hold is dropped", StepOutcome{StepID: "fence/b", Outcomes: []cluster.Outcome{{Code: cluster.CodeDropped}}}, false},
		{"not dropped", StepOutcome{StepID: "drop/b", Outcomes: []cluster.Outcome{{Code: cluster.CodeInUse}}}, false},
	} {
		if got := Unfinished(pl, []StepOutcome{c.out}); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWaitingForReplayWakesSoonThenLessOften(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.turn()
	w.now = w.now.Add(-20 * time.Millisecond)
	w.turn()
	if w.plan.Again || w.plan.Wake != leastWake {
		t.Errorf("again %t, wake %s", w.plan.Again, w.plan.Wake)
	}
	w.now = w.now.Add(2 * time.Second)
	w.turn()
	if w.plan.Wake < 400*time.Millisecond {
		t.Errorf("wake %s after two seconds", w.plan.Wake)
	}
	w.now = w.now.Add(10 * time.Second)
	w.turn()
	if w.plan.Wake != 0 {
		t.Errorf("wake %s, the next tick comes as soon", w.plan.Wake)
	}
}

// What a plan makes or drops is reason enough for another look.
func TestAgainAfterWhatIsMadeAndDropped(t *testing.T) {
	w := settled(t)
	delete(w.servers["b"].slots, "app")
	w.turn()
	if !kinds(w.plan)["apply/b/held"] && !kinds(w.plan)["apply/b"] || !w.plan.Again {
		t.Errorf("again %t after %s", w.plan.Again, describe(w.plan))
	}
	w.turns(3)
	if w.plan.Again {
		t.Error("again, though nothing is left to do")
	}
	delete(w.servers["a"].slots, "app")
	w.turns(2)
	if !kinds(w.plan)["drop/b"] || !w.plan.Again {
		t.Errorf("again %t after %s", w.plan.Again, describe(w.plan))
	}
}

// A hold that is made anew is no reason for another look.
func TestNotAgainAfterAHold(t *testing.T) {
	w := settled(t)
	delete(w.servers["c"].slots, cluster.HoldName)
	w.turn()
	if len(w.plan.Steps) != 1 || w.plan.Steps[0].ID != "lower/c" || w.plan.Again {
		t.Errorf("again %t after %s", w.plan.Again, describe(w.plan))
	}
}

// The primary is looked at after a quarter of the time since a slot of it moved.
func TestPollsLessOftenAsNothingMoves(t *testing.T) {
	w := settled(t)
	w.catchUp("app")
	w.turn()
	moved := w.memory.MovedAt
	for _, c := range []struct{ since, poll time.Duration }{
		{time.Millisecond, time.Millisecond}, {400 * time.Millisecond, 100 * time.Millisecond}, {3600 * time.Millisecond, 900 * time.Millisecond},
		{4 * time.Second, 0}, {time.Minute, 0},
	} {
		w.now = moved.Add(c.since)
		w.turn()
		if w.plan.Poll != c.poll {
			t.Errorf("%s after a move: poll %s, want %s", c.since, w.plan.Poll, c.poll)
		}
	}
	if !w.memory.MovedAt.Equal(moved) {
		t.Errorf("moved at %s, and at %s", moved, w.memory.MovedAt)
	}
}

// Nobody waits for the replay of a standby that cannot be read, or whose slot the
// server's own worker keeps.
func TestAwaitsOnlyWhatItMoves(t *testing.T) {
	for name, spoil := range map[string]func(b *server){
		"":                         func(*server) {},
		"it is away":               func(b *server) { b.up = false },
		"its slot is the server's": func(b *server) { b.node.SyncSlots = true; delete(b.slots, "app") },
	} {
		w := settled(t)
		app(w, "a").Failover = true
		spoil(w.servers["b"])
		w.turn()
		w.catchUp("app")
		w.turn()
		_, b := w.plan.Awaits["b"]
		_, c := w.plan.Awaits["c"]
		if b != (name == "") || !c {
			t.Errorf("%q: awaits %v", name, w.plan.Awaits)
		}
	}
}

// Of what several slots wait for, the first that replay comes to.
func TestAwaitsTheNearest(t *testing.T) {
	for _, names := range [][]string{{"app", "late"}, {"late", "app"}} {
		w := settled(t)
		w.createSlot("late")
		w.turns(3)
		for _, name := range names {
			w.catchUp(name)
		}
		w.turn()
		if got, want := w.plan.Awaits["b"], w.servers["a"].slots[names[0]].Confirmed.V; got != want {
			t.Errorf("%v: awaits %s, want %s", names, got, want)
		}
	}
}
