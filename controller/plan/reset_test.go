package plan

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// putBack gives a primary its disk of when its WAL ended there.
func (w *world) putBack(name string, end cluster.LSN) {
	s := w.servers[name]
	s.node.Insert, s.node.Flush = cluster.Some(end), cluster.Some(end)
	for _, slot := range s.slots {
		if slot.Confirmed.Or(0) > end {
			slot.Restart, slot.Confirmed = cluster.Some(end-0x100), cluster.Some(end)
		}
	}
	s.node.Started = w.now
}

// ahead is a settled world in which b has replayed all that the primary has
// written, and c nothing of it.
func ahead(t *testing.T) *world {
	w := settled(t)
	w.catchUp("app")
	w.replay("b", w.primary().node.Insert.V)
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	return w
}

// mustBeReset wants the condition, nothing written, and nothing SAFE on b, which
// has what the primary has not.
func (w *world) mustBeReset(t *testing.T) {
	t.Helper()
	if len(w.plan.Steps) != 0 || !w.has(CondTimelineReset) || w.has(CondPrimaryBehindMirror) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
	w.mustBe(t, "app", "b", Unsafe, ReasonTimelineMismatch)
}

func TestPrimaryPutBackOnItsOwnTimeline(t *testing.T) {
	w := ahead(t)
	w.putBack("a", 0x30000)
	w.turn()
	w.mustBeReset(t)
	w.mustBe(t, "app", "c", Safe, "") // what it has, the primary has too

	// It goes on from there, until its positions look as they did.
	w.write(0x100000)
	w.turns(2)
	w.mustBeReset(t)
	w.newLeader()
	w.turn()
	w.mustBeReset(t)

	// What b has taken in meanwhile nobody knows: also without that primary it is no
	// candidate, and where it is promoted all the same, no consumer finds its mirror.
	w.servers["a"].up = false
	w.turn()
	w.mustBe(t, "app", "b", Unsafe, ReasonTimelineMismatch)
	w.promote("b")
	w.turns(2)
	if w.has(CondTimelineReset) || w.memory.Primary != "b" || w.servers["b"].slots["app"] != nil {
		t.Fatalf("primary %q, slots %v, conditions %v", w.memory.Primary, w.servers["b"].slots, w.conditions)
	}
}

// A standby that had nothing else follows the primary that was put back, and can be
// promoted in its place.
func TestAStandbyThatHadNothingElseIsPromotedAfterAReset(t *testing.T) {
	w := ahead(t)
	w.putBack("a", 0x30000)
	w.turn()
	w.write(0x100000)
	w.replay("c", w.primary().node.Insert.V)
	w.turn()
	w.mustBe(t, "app", "c", Safe, "")
	w.newLeader()
	w.servers["b"].up = false
	w.turn()
	w.promote("c")
	w.turns(3)
	if w.has(CondTimelineReset) || w.memory.Primary != "c" || w.servers["c"].slots["app"] == nil {
		t.Fatalf("primary %q, slots %v, conditions %v", w.memory.Primary, w.servers["c"].slots, w.conditions)
	}
}

// A standby that was started too replays its own WAL anew at that moment: that it
// seems to have nothing else yet says nothing of what lies on its disk.
func TestAStandbyThatReplaysItsOwnWALAfterAReset(t *testing.T) {
	w := ahead(t)
	w.putBack("a", 0x30000)
	b := &w.servers["b"].node
	had := b.Replay
	b.Replay, b.Receive, b.Started = cluster.Some(cluster.LSN(0x2fff0)), cluster.None[cluster.LSN](), w.now
	w.turn()
	b.Replay = had
	w.write(0x100000)
	w.turn()
	w.mustBeReset(t)
	w.servers["a"].up = false
	w.turn()
	w.promote("b")
	w.turns(2)
	if w.servers["b"].slots["app"] != nil {
		t.Errorf("a consumer finds %+v", w.servers["b"].slots["app"])
	}
}

// What only a standby has shown of the old WAL counts as well: the primary wrote
// it after its last read, and was away when the standby had replayed it.
func TestAStandbyShowsThatThePrimaryWasPutBack(t *testing.T) {
	w := settled(t)
	w.write(0x1000)
	w.replay("b", w.primary().node.Insert.V)
	w.servers["a"].up = false
	w.turn()
	w.servers["a"].up = true
	w.putBack("a", 0x30800)
	app(w, "a").Incarnation = w.incarnation() // a copied folder
	// The first answer was asked for before the standby's.
	w.fail = map[string]Fact[NodeRead]{"a": {At: w.memory.ReachedAt, Value: w.servers["a"].read()}}
	w.turn()
	if len(w.plan.Steps) != 0 {
		t.Fatalf("by the word of an answer that may be old: %s", describe(w.plan))
	}
	w.fail = nil
	w.turn()
	w.mustBeReset(t)
}

// A new leader has it from the ledger, also where no standby answers.
func TestTheLedgerShowsThatThePrimaryWasPutBack(t *testing.T) {
	w := ahead(t)
	w.now = w.now.Add(time.Minute)
	w.turn() // written
	w.newLeader()
	w.servers["b"].up, w.servers["c"].up = false, false
	w.putBack("a", 0x30000)
	w.turn()
	if len(w.plan.Steps) != 0 || !w.has(CondTimelineReset) {
		t.Fatalf("steps %s, conditions %v", describe(w.plan), w.conditions)
	}
}

// Without the ledger nobody knows which of the two is wrong: what the mirror says
// is not SAFE, and the others are none the worse.
func TestAMirrorBeyondThePrimaryIsNotSafe(t *testing.T) {
	w := ahead(t)
	w.memory = Memory{Epoch: w.memory.Epoch + 1, Store: store}
	w.putBack("a", 0x30000)
	for range 3 {
		w.turn()
		w.mustBe(t, "app", "b", Unsafe, ReasonMirrorAhead)
		w.mustBe(t, "app", "c", Safe, "")
	}
}

// A standby that is ahead from its first read on is of another history; it stops
// nobody but itself.
func TestAStandbyOfAnotherHistoryIsNoReset(t *testing.T) {
	w := settled(t)
	w.servers["d"] = newServer(true, w.nextXID)
	w.servers["d"].node.Replay = cluster.Some(cluster.LSN(0x90000))
	w.turns(5)
	if w.has(CondTimelineReset) {
		t.Fatalf("conditions %v", w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

// Reads are not simultaneous: a standby may show what the primary wrote after it
// was read. WAL that was not flushed is lost in a crash, and nobody has it.
func TestWhatLooksLikeAResetAndIsNone(t *testing.T) {
	w := settled(t)
	stale := Fact[NodeRead]{At: w.now, Value: w.servers["a"].read()}
	w.write(0x1000)
	w.replayAll()
	w.fail = map[string]Fact[NodeRead]{"a": {At: w.now, Err: "no answer within this cycle's time", Reason: ReasonUnreachable}}
	w.turn()
	w.fail["a"] = stale // it was asked before the standbys were
	w.turn()
	if w.has(CondTimelineReset) || len(w.plan.Steps) != 0 {
		t.Errorf("of a read that began before: %v, %s", w.conditions, describe(w.plan))
	}
	w.mustBe(t, "app", "b", Safe, "")
	w.fail = nil
	w.turn()
	if w.has(CondTimelineReset) || w.plan.Primary != "a" {
		t.Errorf("of the read after it: %v", w.conditions)
	}
	n := &w.servers["a"].node
	n.Insert = cluster.Some(n.Insert.V + 0x500) // not flushed
	w.turn()
	w.putBack("a", n.Flush.V)
	w.turn()
	if w.has(CondTimelineReset) {
		t.Errorf("of a crash: %v", w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

// Where each answer of the primary takes longer than a cycle, its standbys have always
// shown more by then. It is followed all the same.
func TestAPrimaryThatAnswersSlowlyIsNoReset(t *testing.T) {
	w := settled(t)
	silent := Fact[NodeRead]{Err: "no answer within this cycle's time", Reason: ReasonUnreachable}
	slowly := func() {
		asked := Fact[NodeRead]{At: w.now, Value: w.servers["a"].read()}
		w.catchUp("app")
		w.replayAll()
		silent.At = w.now
		w.fail = map[string]Fact[NodeRead]{"a": silent}
		w.turn()
		w.fail["a"] = asked
		w.turn()
	}
	for range 3 {
		slowly()
		if w.plan.Primary != "a" || w.has(CondNoLeader) {
			t.Fatalf("primary %q, conditions %v", w.plan.Primary, w.conditions)
		}
	}
	at := w.verdict("app", "b").Mirror.V.Confirmed
	slowly()
	if now := w.verdict("app", "b").Mirror.V.Confirmed; now <= at {
		t.Errorf("the mirror stays at %s, the slot is at %s", now, app(w, "a").Confirmed.V)
	}
	w.newLeader() // which must see one answer first
	slowly()
	slowly()
	if w.plan.Primary != "a" {
		t.Fatalf("after a new leader: primary %q, conditions %v", w.plan.Primary, w.conditions)
	}
	w.fail = nil
	w.putBack("a", 0x30000)
	w.turn()
	if !w.has(CondTimelineReset) {
		t.Errorf("conditions %v", w.conditions)
	}
}

// What is flushed ends with a page, within a record that a crash takes back.
func TestACrashGoesBackWithinARecord(t *testing.T) {
	w := settled(t)
	a := w.servers["a"]
	w.write(0x1000)
	w.replay("b", a.node.Insert.V)
	end := a.node.Insert.V
	a.node.Insert, a.node.Flush = cluster.Some(end+0x5000), cluster.Some(end+0x2000)
	w.turns(2)
	a.node.Insert, a.node.Flush = cluster.Some(end+0x70), cluster.Some(end+0x70) // the checkpoint that ends recovery
	w.turns(2)
	if w.has(CondTimelineReset) {
		t.Fatal(w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
}
