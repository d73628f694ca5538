package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// outdated is a world in which a row that slot app needs has died, and a session of
// b has looked, before there is a hold.
func outdated(application string, busy bool) *world {
	w := newWorld("b", "c")
	w.createSlot("app")
	w.outdate()
	w.replayAll()
	w.connect(w.servers["b"], application, busy)
	return w
}

func TestNoMirrorBesideAnOldSession(t *testing.T) {
	w := outdated("psql", false)
	w.turns(3)
	w.mustBe(t, "app", "b", Pending, ReasonOldSession)
	w.mustBe(t, "app", "c", Safe, "")
	w.now = w.now.Add(time.Minute)
	w.turns(3)
	w.mustBe(t, "app", "b", Pending, ReasonOldSession)

	w.servers["b"].sessions = nil
	w.now = w.now.Add(time.Minute)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	w.look(w.servers["b"], w.connect(w.servers["b"], "psql", false))
	if why := w.decoder("b", "app"); why != "" {
		t.Errorf("beside a young session: %s", why)
	}
}

// A mirror that could be made beside an old session, for none of its rows had died,
// does not vouch for what that session has seen when the hold is made anew.
func TestHoldMadeAnewBesideAMirrorAndAnOldSession(t *testing.T) {
	w := outdated("psql", false)
	w.createSlot("late")
	w.replayAll()
	w.turns(3)
	w.mustBe(t, "late", "b", Safe, "")
	if why := w.decoder("b", "late"); why != "" {
		t.Errorf("nothing has died since it began, and %s", why)
	}
	delete(w.servers["b"].slots, cluster.HoldName)
	for range 3 {
		w.now = w.now.Add(time.Minute)
		w.turn()
	}
	w.mustBe(t, "app", "b", Pending, ReasonOldSession)
	w.mustBe(t, "late", "b", Safe, "")
}

// What the model's decoder says of a mirror that is made all the same.
func TestModelOldSessionRemovesWhatAMirrorNeeds(t *testing.T) {
	w := outdated("psql", false)
	b := w.servers["b"]
	w.turns(2)
	b.held = holding{} // its hold's marker says nothing of sessions
	w.now = w.now.Add(time.Minute)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if why := w.decoder("b", "app"); !strings.Contains(why, "a session of psql there would remove") {
		t.Errorf("before the promotion: %q", why)
	}
	w.promote("b")
	w.turns(2)
	w.mustBe(t, "app", "c", Safe, "")
	w.look(b, b.sessions[0])
	if why := w.decoder("c", "app"); !strings.Contains(why, "removed by a session of the primary") {
		t.Errorf("after the promotion: %q", why)
	}
}

func TestOldSessionsAreEnded(t *testing.T) {
	for name, c := range map[string]struct {
		application  string
		busy         bool
		manage, seen bool // policy, Patroni
		ends         bool
	}{
		"nobody's":                  {"psql", false, false, false, false},
		"where that is wanted":      {"psql", false, true, false, true},
		"not while it is busy":      {"psql", true, true, false, false},
		"not psql's beside Patroni": {"psql", false, false, true, false},
		"Patroni's":                 {"Patroni", false, false, true, true},
		"Patroni's without Patroni": {"Patroni", false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := outdated(c.application, c.busy)
			w.policy.ManageOldSessions = c.manage
			if c.seen {
				w.manager, w.leader = &cluster.Manager{TTL: 20 * time.Second, UseSlots: true, Slots: cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}}}, "a"
			}
			w.turns(3)
			if one := w.servers["b"].sessions; len(one) != 1 {
				t.Fatalf("%d sessions before an interval is over", len(one))
			}
			w.mustBe(t, "app", "b", Pending, ReasonOldSession)
			w.now = w.now.Add(time.Minute)
			w.turn()
			if c.ends {
				w.mustBe(t, "app", "b", Safe, "")
			} else {
				w.mustBe(t, "app", "b", Pending, ReasonOldSession)
			}
		})
	}
}
