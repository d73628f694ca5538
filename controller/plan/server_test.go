package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// coexisting is a world of 17 with slot app of ours and slot native of the
// server's, whose workers run on these nodes.
func coexisting(t *testing.T, workers ...string) *world {
	t.Helper()
	w := newWorld("b", "c")
	for name, s := range w.servers {
		s.node.ServerVersion = 170012
		s.node.PrimarySlotName = "slot_" + name
	}
	for _, name := range []string{"b", "c"} {
		w.servers["a"].slots["slot_"+name] = &cluster.Slot{
			Name: "slot_" + name, Kind: cluster.Physical, ActivePID: 100, Restart: cluster.Some(cluster.LSN(0x1000)), Saved: true, WALok: true,
		}
	}
	for _, name := range workers {
		w.servers[name].node.SyncSlots = true
	}
	w.createSlot("app")
	w.createSlot("native").Failover = true
	for _, name := range workers {
		if !w.syncSlots(name) {
			t.Fatal("the worker stops")
		}
	}
	w.turns(3)
	return w
}

func (w *world) work(t *testing.T, workers ...string) {
	t.Helper()
	for _, name := range workers {
		if !w.syncSlots(name) {
			t.Fatalf("the worker of %s stops at a slot that it did not make", name)
		}
	}
}

func TestServerSlotIsJudgedAndNeverTouched(t *testing.T) {
	w := coexisting(t, "b", "c")
	for _, node := range []string{"b", "c"} {
		w.mustBe(t, "app", node, Safe, "")
		w.mustBe(t, "native", node, Safe, "")
		if m := w.servers[node].slots["native"]; m.Marker != nil || !m.Synced {
			t.Errorf("native on %s was touched: %+v", node, m)
		}
	}
	if v := w.verdict("native", "b"); !strings.Contains(v.Message, "server's own synchronization") || !v.Mirror.OK {
		t.Errorf("it does not say whose it is, or where it stands: %+v", v)
	}
	if len(w.memory.Kept["native"]) != 0 {
		t.Error("reads are kept that nobody will want")
	}
	o := w.observe()
	if want := WantSnapshots(w.policy, w.memory, o.Nodes["a"].Value.Slots); len(want) > 1 {
		t.Errorf("snapshots are fetched at %v", want)
	}
	w.catchUp("native")
	w.replayAll()
	w.turn()
	for _, s := range w.plan.Steps {
		for _, ch := range s.Changes {
			if ch.Name == "native" {
				t.Errorf("step %s moves the server's slot", s.ID)
			}
		}
	}
}

func TestServerSlotVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		do     func(w *world, copied *cluster.Slot)
		state  State
		reason Reason
		says   string
	}{
		{"temporary", func(_ *world, s *cluster.Slot) { s.Temporary = true }, Pending, ReasonNew, "begun to copy"},
		{"not there", func(w *world, _ *cluster.Slot) { delete(w.servers["b"].slots, "native") }, Pending, ReasonNew, "not copied"},
		{"worker cannot run", func(w *world, _ *cluster.Slot) {
			delete(w.servers["b"].slots, "native")
			w.servers["b"].node.Feedback = false
		}, Pending, ReasonNew, "hot_standby_feedback is off"},
		{"rows removed", func(_ *world, s *cluster.Slot) { s.Invalidated = "rows_removed" }, Lost, ReasonRowsRemoved, "server's copy"},
		{"wal removed", func(_ *world, s *cluster.Slot) { s.Invalidated = "wal_removed" }, Lost, ReasonWALRemoved, "server's copy"},
		{"another plugin", func(_ *world, s *cluster.Slot) { s.Plugin = "wal2json" }, Pending, ReasonNew, "another slot"},
		{"another database", func(_ *world, s *cluster.Slot) { s.DatabaseOID = 6 }, Pending, ReasonNew, "another slot"},
		{"WAL gone", func(_ *world, s *cluster.Slot) { s.WALok = false }, Pending, ReasonWALMissing, "needs WAL"},
		{"lost on the primary", func(w *world, _ *cluster.Slot) { w.servers["a"].slots["native"].Invalidated = "wal_removed" }, Lost, ReasonWALRemoved, "lost on the primary"},
		{"behind", func(w *world, _ *cluster.Slot) { w.catchUp("native") }, Safe, "", "behind"},
		{"silent", func(w *world, _ *cluster.Slot) { w.servers["b"].up = false }, Unknown, ReasonUnreachable, "no answer"},
		{"no primary", func(w *world, _ *cluster.Slot) { w.servers["a"].up = false }, Safe, "", ""},
		{"no primary and no copy", func(w *world, _ *cluster.Slot) {
			w.servers["a"].up = false
			delete(w.servers["b"].slots, "native")
		}, Unsafe, ReasonSlotMissing, "no copy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := coexisting(t, "b", "c")
			tc.do(w, w.servers["b"].slots["native"])
			w.turn()
			w.mustBe(t, "native", "b", tc.state, tc.reason)
			if v := w.verdict("native", "b"); !strings.Contains(v.Message, tc.says) {
				t.Errorf("it says %q, want %q in it", v.Message, tc.says)
			}
		})
	}
}

// The worker copies between our reads: a copy that is ahead of one read is none
// that is ahead of the next one.
func TestServerCopyAheadOfOneReadOnly(t *testing.T) {
	w := coexisting(t, "b", "c")
	for range 5 {
		copied := w.servers["b"].slots["native"]
		copied.Confirmed = cluster.Some(copied.Confirmed.V + 0x80)
		w.turn()
		w.mustBe(t, "native", "b", Safe, "")
		w.write(0x80)
		w.confirm("native", copied.Restart.V, copied.Confirmed.V, copied.CatalogXmin.V)
	}
	w.servers["b"].slots["native"].Confirmed = cluster.Some(cluster.LSN(0x90000))
	w.turns(2)
	w.mustBe(t, "native", "b", Unsafe, ReasonMirrorAhead)
}

func TestServerLeftoverOfOursIsRemoved(t *testing.T) {
	w := coexisting(t) // no worker: native is mirrored like any slot
	w.mustBe(t, "native", "b", Safe, "")
	if m := w.servers["b"].slots["native"]; m.Failover || m.Synced {
		t.Errorf("the mirror has the flags of the original: %+v", m)
	}
	w.servers["b"].node.SyncSlots = true
	if w.syncSlots("b") {
		t.Fatal("the scene is not set: the worker does not stop")
	}
	w.turn()
	w.mustBe(t, "native", "b", Pending, ReasonNew)
	if w.servers["b"].slots["native"] != nil || w.has(CondSlotSyncStopped) {
		t.Fatalf("the leftover is there, or told of as somebody else's: %s", describe(w.plan))
	}
	w.mustBe(t, "native", "c", Safe, "")
	w.work(t, "b")
	w.turn()
	w.mustBe(t, "native", "b", Safe, "")
}

func TestServerLeftoverOfOthersIsToldOf(t *testing.T) {
	w := coexisting(t, "b", "c")
	w.servers["b"].slots["native"] = &cluster.Slot{Name: "native", Kind: cluster.Logical}
	w.policy.Exclude = []Match{{Name: "unchosen"}}
	w.createSlot("unchosen").Failover = true
	w.servers["c"].slots["unchosen"] = &cluster.Slot{Name: "unchosen", Kind: cluster.Logical}
	w.turn()
	w.mustBe(t, "native", "b", Unsafe, ReasonNotOurs)
	if v := w.verdict("native", "b"); !strings.Contains(v.Message, "any failover slot") || !strings.Contains(v.Hint, "pg_drop_replication_slot('native')") {
		t.Errorf("it does not say what it stops: %s %s", v.Message, v.Hint)
	}
	told := map[string]bool{}
	for _, c := range w.conditions {
		if c.Code == CondSlotSyncStopped {
			told[c.Subject] = true
		}
	}
	if !told["b/native"] || !told["c/unchosen"] || len(told) != 2 {
		t.Errorf("told of %v", told)
	}
	if w.servers["b"].slots["native"] == nil {
		t.Error("it was touched")
	}
}

func TestServerSlotsNeedNoRoomOfOurs(t *testing.T) {
	w := newWorld("b")
	for name, s := range w.servers {
		s.node.ServerVersion, s.node.SyncSlots = 170012, name == "b"
	}
	w.servers["b"].node.MaxSlots = 3 // two holds and one mirror
	w.createSlot("aaa").Failover = true
	w.createSlot("app")
	w.turns(3)
	w.mustBe(t, "app", "b", Safe, "")
}

// C24: one slot of each kind, two switchovers.
func TestServerSlotThroughTwoSwitchovers(t *testing.T) {
	w := coexisting(t, "a", "b", "c")
	for _, to := range []string{"b", "a"} {
		from := map[string]string{"a": "b", "b": "a"}[to]
		w.promote(to)
		w.turn()
		if w.has(CondSlotRecreated) || w.has(CondSlotMissing) || w.has(CondProtectionGap) || w.has(CondFailoverFlagPending) {
			t.Fatalf("after the promotion of %s: %+v", to, w.conditions)
		}
		old, now := w.servers[from], w.servers[to]
		old.up, old.node.InRecovery, old.node.Timeline, old.node.History = true, true, now.node.Timeline, now.node.History
		old.node.Replay, old.node.Receive = now.node.Insert, now.node.Insert
		w.replayAll()
		w.turns(2)
		w.work(t, from, "c")
		w.catchUp("app")
		w.catchUp("native")
		w.replayAll()
		w.work(t, from, "c")
		w.turns(2)
		for _, node := range []string{from, "c"} {
			w.mustBe(t, "app", node, Safe, "")
			w.mustBe(t, "native", node, Safe, "")
		}
	}
}

func TestSyncedLeftoverWithoutWorkerIsNotOurs(t *testing.T) {
	w := coexisting(t, "b")
	w.servers["b"].node.SyncSlots = false
	w.turn()
	w.mustBe(t, "native", "b", Unsafe, ReasonNotOurs)
	if v := w.verdict("native", "b"); !strings.Contains(v.Hint, "sync_replication_slots") {
		t.Errorf("hint %q", v.Hint)
	}
	if s := w.servers["b"].slots["native"]; s == nil || s.Marker != nil {
		t.Error("it was touched")
	}
}
