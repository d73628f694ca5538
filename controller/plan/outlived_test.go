package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// movedPastTheRow is a world in which a session of b is older than its hold, and b's
// mirror of app is beyond the row that this session takes for being of no use, while
// c's mirror still needs it.
func movedPastTheRow(t *testing.T) *world {
	w := outdated("psql", false)
	w.turns(3)
	w.catchUp("app")
	w.replay("b", w.primary().node.Insert.V)
	w.turns(2)
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "app", "c", Safe, "")
	return w
}

func TestMirrorsThatAPromotedNodesOldSessionsEndanger(t *testing.T) {
	w := movedPastTheRow(t)
	w.promote("b")
	w.look(w.servers["b"], w.servers["b"].sessions[0])
	if w.decoder("c", "app") == "" {
		t.Fatal("c's mirror is well: nothing to see here")
	}
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
	if v := w.verdict("app", "c"); !strings.Contains(v.Message, "sessions on b are older than its hold") {
		t.Error(v.Message)
	}
	w.mustBeMadeAnew(t, "c")
}

// A member that is away then comes back with that mirror.
func TestMirrorOfAnAwayMemberThatOldSessionsEndanger(t *testing.T) {
	w := movedPastTheRow(t)
	w.servers["c"].up = false
	w.turn()
	w.promote("b")
	w.turn()
	w.look(w.servers["b"], w.servers["b"].sessions[0])
	w.servers["c"].up = true
	w.rejoin(w.servers["c"])
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
}

// Nor does a leader that has nothing but the ledger know that no session outlived it.
func TestNewLeaderAfterOldSessionsEndangeredMirrors(t *testing.T) {
	w := movedPastTheRow(t)
	w.promote("b")
	w.look(w.servers["b"], w.servers["b"].sessions[0])
	w.memory = Memory{Epoch: w.memory.Epoch + 1, Store: store}
	w.turn()
	w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
}

// Nor does it come back unharmed where the topology does not name it in that cycle,
// as Patroni names none whose key has run out: c is known from the ledger, or where
// that is lost nobody knows of it.
func TestMirrorOfAMemberThatIsNotListedThenAndOldSessionsEndanger(t *testing.T) {
	for name, led := range map[string]func(*world){
		"one leader":       func(*world) {},
		"a new leader":     (*world).newLeader,
		"without a ledger": func(w *world) { w.memory = Memory{Epoch: w.memory.Epoch + 1, Store: store} },
	} {
		t.Run(name, func(t *testing.T) {
			w := outdated("psql", false)
			w.createSlot("idle") // it keeps the holds where they are
			w.turns(3)
			w.catchUp("app")
			w.replay("b", w.primary().node.Insert.V)
			w.turns(2)
			w.mustBe(t, "app", "c", Safe, "")
			w.servers["c"].up = false
			w.unlisted = map[string]bool{"a": true, "c": true}
			w.promote("b")
			w.look(w.servers["b"], w.servers["b"].sessions[0])
			led(w)
			w.turn()
			w.catchUp("app")
			w.turns(2)
			w.unlisted = nil
			w.followFromTheFork("c")
			w.turn()
			w.mustBe(t, "app", "c", Unsafe, ReasonProtectionGap)
		})
	}
}

// followFromTheFork has a standby that was away replay the old timeline to its end.
func (w *world) followFromTheFork(name string) {
	p, s := w.primary(), w.servers[name]
	fork := cluster.Some(forkOf(p.node, parentTimeline(p.node)))
	s.up, s.node.Timeline, s.node.History = true, p.node.Timeline, p.node.History
	s.node.Replay, s.node.Receive = fork, fork
}

func TestPromotionsThatEndangerNoMirror(t *testing.T) {
	for name, before := range map[string]func(*world){
		"the session had ended": func(w *world) {
			w.servers["b"].sessions = nil
			w.turn()
		},
		"the mirrors stand where the node's own does": func(w *world) {
			w.replayAll()
			w.turns(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := movedPastTheRow(t)
			before(w)
			w.promote("b")
			w.turn()
			w.mustBe(t, "app", "c", Safe, "")
			if why := w.decoder("c", "app"); why != "" {
				t.Error(why)
			}
		})
	}
}
