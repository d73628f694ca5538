package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// old is a transaction id of more than a tenth of autovacuum_freeze_max_age before now.
func old(w *world) cluster.XID {
	for _, s := range w.servers {
		s.node.FreezeMaxAge = 1000
		s.node.NextXID = w.nextXID
	}
	return w.nextXID - 150
}

func physical(name string) *cluster.Slot {
	return &cluster.Slot{Name: name, Kind: cluster.Physical, Restart: cluster.Some(cluster.LSN(0x20000)), WALok: true, Saved: true}
}

// consumed is app with a walsender that has sent so much.
func consumed(w *world, sent, confirmed cluster.LSN) {
	p := w.primary()
	p.slots["app"].ActivePID, p.slots["app"].Confirmed = 7, cluster.Some(confirmed)
	p.walsenders = []cluster.Walsender{{PID: 7, State: "streaming", SlotName: "app", Sent: cluster.Some(sent)}}
}

// stuck is a restart_lsn that has stood for so long, behind the transaction writer.
func stuck(d time.Duration, writer cluster.Transaction) func(*world) {
	return func(w *world) {
		w.write(100 << 20)
		app(w, "a").Confirmed = w.primary().node.Insert
		w.replayAll()
		if writer.PID != 0 || writer.GID != "" {
			writer.Started, writer.XID = w.now.Add(-time.Hour), app(w, "a").CatalogXmin.V
			w.servers["a"].node.OldestWriter = cluster.Some(writer)
		}
		w.turn()
		w.now = w.now.Add(d)
	}
}

// conditionSituations are what the conditions are shown of.
var conditionSituations = []situation{
	{name: "no primary answers", do: func(w *world) { w.servers["a"].up = false }},
	{name: "two take writes", do: func(w *world) { w.promote("b"); w.servers["a"].up = true }},
	{name: "the primary is on an older timeline than it was", do: func(w *world) {
		w.promote("b")
		w.turn()
		w.servers["b"].node.Timeline = 1
	}},
	{name: "the primary was put back to an older state of its timeline", do: func(w *world) {
		w.catchUp("app")
		w.replay("b", w.primary().node.Insert.V)
		w.turns(2)
		w.putBack("a", 0x30000)
	}},
	{name: "another etcd's controller has been there", do: func(w *world) { w.servers["b"].node.Fence.V.Store = "store-2" }},
	{name: "no standby has all slots", do: func(w *world) { w.servers["b"].up, w.servers["c"].up = false, false }},
	{name: "Patroni is paused", do: func(w *world) { w.manager, w.leader = covering(), "a"; w.manager.Paused = true }},
	{name: "Patroni's cluster follows another one", do: func(w *world) { w.manager, w.leader = covering(), "a"; w.manager.StandbyCluster = true }},
	{name: "Patroni's keys and names", do: func(w *world) {
		w.manager, w.leader = covering(), "a"
		w.manager.UseSlots = false
		w.manager.Problems = []cluster.KeyProblem{{Key: "members/c", Text: "it is no JSON"}}
		w.manager.Slots.Members = map[string][]string{"n_1": {"n-1", "n.1"}}
	}},
	{name: "the topology cannot be read", do: func(w *world) { w.unknown = "etcd does not answer" }},
	{name: "a mirror is gone that nobody of us dropped", do: func(w *world) { delete(w.servers["b"].slots, "app") }},

	{name: "the hold is gone, and nothing was lost", do: func(w *world) { delete(w.servers["a"].slots, cluster.HoldName) }},
	{name: "a standby is away for half an hour", do: func(w *world) { w.servers["c"].up = false; w.turn(); w.now = w.now.Add(30 * time.Minute) }},
	{name: "a standby is away for longer than max_hold_age", do: func(w *world) { w.servers["c"].up = false; w.turn(); w.now = w.now.Add(61 * time.Minute) }},
	{name: "a standby that is away is forgotten", do: func(w *world) { w.servers["c"].up = false; w.turn(); w.memory.Forget("c") }},
	{name: "the hold is very old", do: func(w *world) {
		x := old(w)
		setXmin(w.hold("a"), x)
	}},
	{name: "a slot's consumer lets rows grow very old", do: func(w *world) { setXmin(app(w, "a"), old(w)) }},
	{name: "a standby's query lets rows grow very old", do: func(w *world) {
		w.servers["a"].slots["b"] = physical("b")
		w.servers["a"].slots["b"].Xmin = cluster.Some(old(w))
	}},

	{name: "feedback is off", do: func(w *world) { w.servers["b"].node.Feedback = false }},
	{name: "the physical slot of a standby is not there", do: func(w *world) { w.servers["b"].node.PrimarySlotName = "slot_b" }},
	{name: "the physical slot of a standby behind another standby", do: func(w *world) {
		w.servers["b"].node.PrimarySlotName = "slot_b"
		w.servers["c"].slots["slot_b"] = physical("slot_b")
	}},
	{name: "the physical slot of a standby is invalidated", do: func(w *world) {
		w.servers["b"].node.PrimarySlotName = "slot_b"
		w.servers["a"].slots["slot_b"] = physical("slot_b")
		w.servers["a"].slots["slot_b"].Invalidated = "wal_removed"
	}},
	{name: "a physical slot that nobody names and nobody uses", do: func(w *world) {
		w.servers["a"].slots["gone"] = physical("gone")
		w.turn()
		w.now = w.now.Add(orphanAfter)
	}},
	{name: "one that nobody names and somebody uses", do: func(w *world) {
		w.servers["a"].slots["archive"] = physical("archive")
		w.servers["a"].slots["archive"].ActivePID = 300
		w.turn()
		w.now = w.now.Add(orphanAfter)
	}},
	{name: "the same, while a member is away that was never read", do: func(w *world) {
		w.servers["a"].slots["gone"] = physical("gone")
		w.servers["d"] = newServer(true, w.nextXID)
		w.servers["d"].up = false
		w.turn()
		w.now = w.now.Add(orphanAfter)
	}},
	{name: "synchronized_standby_slots lists a slot that is not there", do: func(w *world) { w.servers["a"].node.SynchronizedStandbySlots = []string{"gone"} }},
	{name: "synchronized_standby_slots cannot be set", do: func(w *world) {
		w.policy.ManageStandbySlots = true
		w.servers["a"].node.ServerVersion, w.servers["b"].node.PrimarySlotName = 170000, "slot_b"
		w.servers["a"].slots["slot_b"] = physical("slot_b")
		streaming(w, "slot_b")
		w.denied = "permission denied to set parameter"
	}},
	{name: "idle slots are invalidated", do: func(w *world) { w.servers["b"].node.IdleSlotTimeout = time.Minute }},
	{name: "a slot keeps the server's worker from its work", do: func(w *world) {
		app(w, "a").Failover, w.servers["b"].node.SyncSlots = true, true
		app(w, "b").Marker = nil
	}},
	{name: "mirrors of a slot that is not selected any more", do: func(w *world) { w.policy.Exclude = []Match{{Name: "app"}} }},

	{name: "a crash took the slot back", do: func(w *world) { app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x2ff80)) }},
	{name: "the slot is another one", do: func(w *world) { w.createSlot("app") }},
	{name: "far behind", do: func(w *world) {
		w.write(100 << 20)
		app(w, "a").Confirmed = w.primary().node.Insert
		w.receive("b", w.primary().node.Insert.V)
		w.receive("c", w.primary().node.Insert.V)
	}},
	{name: "a transaction of half a minute holds restart_lsn", do: stuck(30*time.Second, cluster.Transaction{PID: 4711})},
	{name: "a transaction of five minutes holds restart_lsn", do: stuck(5*time.Minute, cluster.Transaction{PID: 4711})},
	{name: "a prepared transaction holds restart_lsn", do: stuck(5*time.Minute, cluster.Transaction{GID: "it's"})},
	{name: "nothing holds restart_lsn but its consumer", do: stuck(5*time.Minute, cluster.Transaction{})},

	{name: "promoted behind the consumer", do: func(w *world) { w.catchUp("app"); w.turn(); w.promote("b") }},
	{name: "promoted behind the consumer, which goes on honestly", do: func(w *world) {
		w.catchUp("app")
		w.turn()
		w.promote("b")
		w.turn()
		w.write(0x2000)
		consumed(w, 0x32000, 0x32000)
	}},
	{name: "promoted behind the consumer, which goes on from its own position", do: func(w *world) {
		w.catchUp("app")
		w.turn()
		w.promote("b")
		w.turn()
		w.write(0x2000)
		consumed(w, 0x2ff00, 0x31000)
	}},
	{name: "a consumer that catches up after a promotion", do: func(w *world) {
		w.promote("b")
		w.turn()
		w.write(0x2000)
		consumed(w, 0x2ff00, 0x30000)
	}},
	{name: "confirmed beyond the end of WAL", do: func(w *world) {
		app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x40000))
		w.turn()
	}},
	{name: "promoted, and nobody comes for the slot", do: func(w *world) {
		consumed(w, 0x30000, 0x30000)
		w.turn()
		w.promote("b")
		w.turn()
		w.now = w.now.Add(inactiveAfter)
	}},
	{name: "promoted, and its consumer has come", do: func(w *world) {
		consumed(w, 0x30000, 0x30000)
		w.turn()
		w.promote("b")
		w.turn()
		w.now = w.now.Add(inactiveAfter)
		consumed(w, 0x30000, 0x30000)
	}},
	{name: "promoted without the slot", do: func(w *world) { delete(w.servers["b"].slots, "app"); w.promote("b") }},
	{name: "promoted with a mirror that was not protected, in use", do: func(w *world) {
		delete(w.servers["a"].slots, cluster.HoldName)
		w.refuse = steps(StepStamp)
		w.turn()
		w.refuse = nil
		w.promote("b")
		app(w, "b").ActivePID = 7
	}},
	{name: "promoted, and the failover flag cannot be set yet", do: func(w *world) {
		app(w, "a").Failover = true
		w.turn()
		w.promote("b")
		app(w, "b").ActivePID = 7
	}},
}
