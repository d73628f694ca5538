package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// covering are rules that cover every slot of ours.
func covering() *cluster.Manager {
	named := func(name, kind string) cluster.SlotMatcher {
		return cluster.SlotMatcher{Name: cluster.Some(name), Type: cluster.Some(kind)}
	}
	return &cluster.Manager{TTL: 20 * time.Second, UseSlots: true, Slots: cluster.SlotRules{Ignore: []cluster.SlotMatcher{
		{Type: cluster.Some("logical")}, named(cluster.HoldName, "physical"), named(cluster.WALHoldName, "physical"),
	}}}
}

// managed is a cycle beside Patroni.
func (w *world) managed(m *cluster.Manager, leader string) {
	w.manager, w.leader = m, leader
	w.turn()
}

func (w *world) told(code string) []Condition {
	var found []Condition
	for _, c := range w.conditions {
		if c.Code == code {
			found = append(found, c)
		}
	}
	return found
}

func TestPatroniDrops(t *testing.T) {
	logical := cluster.Slot{Name: "cdc", Kind: cluster.Logical, Database: "shop", Plugin: "pgoutput"}
	hold := cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical}
	failover := logical
	failover.Failover = true
	some := cluster.Some[string]
	one := func(m cluster.SlotMatcher) cluster.SlotRules {
		return cluster.SlotRules{Ignore: []cluster.SlotMatcher{m}}
	}
	for name, c := range map[string]struct {
		slot  cluster.Slot
		rules cluster.SlotRules
		want  string // "" for a slot that is left alone
	}{
		"nothing":                {logical, cluster.SlotRules{}, "has no ignore_slots"},
		"in the wrong place":     {logical, cluster.SlotRules{Misplaced: true}, "stands under postgresql"},
		"unusable":               {logical, cluster.SlotRules{Unusable: "ignore_slots is a mapping, not a list"}, "is a mapping"},
		"everything":             {logical, one(cluster.SlotMatcher{}), ""},
		"a hold by everything":   {hold, one(cluster.SlotMatcher{}), ""},
		"type":                   {logical, one(cluster.SlotMatcher{Type: some("logical")}), ""},
		"another type":           {logical, one(cluster.SlotMatcher{Type: some("physical")}), "none of 1 entries"},
		"type in capitals":       {logical, one(cluster.SlotMatcher{Type: some("LOGICAL")}), "none of 1 entries"},
		"all four":               {logical, one(cluster.SlotMatcher{Name: some("cdc"), Type: some("logical"), Database: some("shop"), Plugin: some("pgoutput")}), ""},
		"another name":           {logical, one(cluster.SlotMatcher{Name: some("cd")}), "none of 1 entries"},
		"a name is no pattern":   {logical, one(cluster.SlotMatcher{Name: some("cd*")}), "none of 1 entries"},
		"another database":       {logical, one(cluster.SlotMatcher{Name: some("cdc"), Database: some("other")}), "none of 1 entries"},
		"another plugin":         {logical, one(cluster.SlotMatcher{Plugin: some("wal2json")}), "none of 1 entries"},
		"a hold by name":         {hold, one(cluster.SlotMatcher{Name: some(cluster.HoldName), Type: some("physical")}), ""},
		"a hold has no database": {hold, one(cluster.SlotMatcher{Name: some(cluster.HoldName), Database: some("shop")}), "none of 1 entries"},
		"broken before a match": {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{Unusable: "entry 1 of ignore_slots is a text, not a mapping"}, {}}},
			"entry 1"},
		"broken after a match": {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}, {Unusable: "entry 2"}}}, ""},
		"Patroni's own":        {logical, cluster.SlotRules{Permanent: map[string]cluster.PermanentSlot{"cdc": {Kind: cluster.Logical, Database: "shop", Plugin: "pgoutput"}}}, ""},
		"its own of another database": {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Permanent: map[string]cluster.PermanentSlot{"cdc": {Kind: cluster.Logical, Database: "x", Plugin: "pgoutput"}}},
			"with database x"},
		"its own physical":       {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Permanent: map[string]cluster.PermanentSlot{"cdc": {Kind: cluster.Physical}}}, "as a physical slot"},
		"an entry it refuses":    {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Permanent: map[string]cluster.PermanentSlot{"cdc": {}}}, ""},
		"a hold among its own":   {hold, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Permanent: map[string]cluster.PermanentSlot{cluster.HoldName: {Kind: cluster.Physical}}}, "Patroni itself keeps it"},
		"a member's name":        {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Members: map[string][]string{"cdc": {"CDC"}}}, "member CDC"},
		"a hold's member":        {hold, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Members: map[string][]string{cluster.HoldName: {"slotkeeper-hold"}}}, "member slotkeeper-hold"},
		"a member that is away":  {logical, cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Members: map[string][]string{"cdc": nil}}, "a member that is away"},
		"failover, spared":       {failover, cluster.SlotRules{SparesFailover: true}, ""},
		"failover, not spared":   {failover, cluster.SlotRules{}, "has no ignore_slots"},
		"not failover, not ours": {logical, cluster.SlotRules{SparesFailover: true}, "has no ignore_slots"},
	} {
		t.Run(name, func(t *testing.T) {
			got := PatroniDrops(&cluster.Manager{UseSlots: true, Slots: c.rules}, c.slot)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	members := cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}, Members: map[string][]string{"cdc": {"cdc"}}}
	if got := PatroniDrops(&cluster.Manager{Slots: members}, logical); got != "" {
		t.Errorf("without use_slots no member has a slot: %q", got)
	}
}

func TestPatroniWillDropIsTheVerdictUntilARuleCovers(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	bare := covering()
	bare.Slots.Ignore = nil
	for range 3 {
		w.managed(bare, "a")
	}
	w.mustBe(t, "app", "b", Unsafe, ReasonPatroniWillDrop)
	if w.servers["b"].slots["app"] == nil {
		t.Error("the mirror is not made: it is better than none")
	}
	if told := w.told(CondPatroniWillDrop); len(told) != 3 || told[0].Subject != "app" {
		t.Errorf("the slot and the two holds are to be named: %v", told)
	}
	w.managed(covering(), "a")
	w.mustBe(t, "app", "b", Safe, "")
	if told := w.told(CondPatroniWillDrop); len(told) != 0 {
		t.Errorf("%v", told)
	}
	onlyLogical := covering()
	onlyLogical.Slots.Ignore = onlyLogical.Slots.Ignore[:1]
	w.managed(onlyLogical, "a")
	w.mustBe(t, "app", "b", Unsafe, ReasonPatroniWillDrop)
	if m := w.verdict("app", "b").Message; !strings.Contains(m, cluster.HoldName) {
		t.Error(m)
	}
}

// While nothing may be made or dropped, what is there goes on moving.
func TestC37StillWhilePausedOrLeaderless(t *testing.T) {
	paused := covering()
	paused.Paused = true
	for name, c := range map[string]struct {
		manager *cluster.Manager
		leader  string
		code    string
	}{
		"paused":         {paused, "a", CondPaused},
		"leaderless":     {covering(), "", CondNoLeader},
		"another leader": {covering(), "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("b")
			w.createSlot("app")
			w.createSlot("old")
			for range 3 {
				w.managed(covering(), "a")
			}
			w.createSlot("late")
			delete(w.servers["a"].slots, "old")
			for range 4 {
				w.catchUp("app")
				w.replayAll()
				w.managed(c.manager, c.leader)
			}
			b := w.servers["b"].slots
			if b["late"] != nil || b["old"] == nil {
				t.Errorf("late %v, old %v", b["late"], b["old"])
			}
			if got, want := b["app"].Confirmed, w.servers["a"].slots["app"].Confirmed; got != want {
				t.Errorf("the mirror stands at %s, the slot at %s", got.V, want.V)
			}
			w.mustBe(t, "app", "b", Safe, "")
			w.mustBe(t, "late", "b", Pending, ReasonNew)
			if c.code != "" && len(w.told(c.code)) != 1 {
				t.Errorf("no condition %s in %v", c.code, w.conditions)
			}
			for range 4 {
				w.managed(covering(), "a")
			}
			w.mustBe(t, "late", "b", Safe, "")
			if b["old"] != nil {
				t.Error("the mirror of a slot that is gone stays")
			}
		})
	}
}

func TestNothingIsBegunInAPausedCluster(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	paused := covering()
	paused.Paused = true
	for range 4 {
		w.managed(paused, "a")
	}
	for node, server := range w.servers {
		for name := range server.slots {
			if name != "app" || node != "a" {
				t.Errorf("%s has %s", node, name)
			}
		}
	}
}

func TestALeaderKeyThatDisagrees(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	for range 3 {
		w.managed(covering(), "a")
	}
	w.managed(covering(), "b")
	if w.plan.Primary != "a" {
		t.Fatal("a key that is a moment old takes the primary away")
	}
	w.now = w.now.Add(21 * time.Second)
	w.managed(covering(), "b")
	if w.plan.Primary != "" || len(w.plan.Steps) != 0 || len(w.told(CondSplitBrain)) != 1 {
		t.Errorf("primary %q, conditions %v", w.plan.Primary, w.conditions)
	}
	w.mustBe(t, "app", "b", Safe, "")
	w.managed(covering(), "a")
	w.managed(covering(), "b")
	if w.plan.Primary != "a" {
		t.Error("the doubt outlives its reason")
	}
}

func TestC37AStandbyLeaderIsNeverThePrimary(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	m := covering()
	m.StandbyCluster = true
	for _, recovering := range []bool{true, false} {
		w.servers["a"].node.InRecovery = recovering
		for range 3 {
			w.managed(m, "a")
		}
		if w.plan.Primary != "" || len(w.plan.Steps) != 0 || len(w.told(CondStandbyCluster)) != 1 {
			t.Errorf("primary %q, %s, %v", w.plan.Primary, describe(w.plan), w.conditions)
		}
	}
}

func TestC25OneAlertPerVanishedMirror(t *testing.T) {
	w := newWorld("b")
	w.createSlot("app")
	for range 3 {
		w.managed(covering(), "a")
	}
	if told := w.told(CondMirrorVanished); len(told) != 0 {
		t.Fatalf("%v", told)
	}
	for range 2 {
		delete(w.servers["b"].slots, "app")
		for range 3 {
			w.managed(covering(), "a")
			if told := w.told(CondMirrorVanished); len(told) != 1 || told[0].Subject != "app/b" {
				t.Fatalf("want one: %v", w.conditions)
			}
		}
		w.mustBe(t, "app", "b", Safe, "")
	}
	w.now = w.now.Add(eventFor)
	w.managed(covering(), "a")
	if told := w.told(CondMirrorVanished); len(told) != 0 {
		t.Errorf("it never ends: %v", told)
	}
}

func TestWhatPatroniSaysOfItself(t *testing.T) {
	w := newWorld("b")
	m := covering()
	m.UseSlots = false
	m.Problems = []cluster.KeyProblem{{Key: "members/c", Text: "it is no JSON"}}
	m.Slots.Members = map[string][]string{"n_1": {"n-1", "n.1"}, "n_2": {"n-2"}}
	w.managed(m, "a")
	for code, subject := range map[string]string{CondUseSlotsOff: "", CondPatroniUnreadable: "members/c", CondPhysicalSlotShared: "n_1"} {
		if told := w.told(code); len(told) != 1 || told[0].Subject != subject || told[0].Hint == "" {
			t.Errorf("%s: %v", code, told)
		}
	}
}
