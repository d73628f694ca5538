package plan

import (
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

var app = func(w *world, node string) *cluster.Slot { return w.servers[node].slots["app"] }

// situations are what the verdicts are shown of.
var situations = []situation{
	{name: "all is well"},
	{name: "slots decode prepared transactions, and it is known from where on", do: func(w *world) {
		app(w, "a").TwoPhase, app(w, "a").TwoPhaseAt = true, app(w, "a").Confirmed
	}},
	{name: "they do, and it is not known from where on", do: func(w *world) { app(w, "a").TwoPhase = true }},
	{name: "they do, and the standby is of PostgreSQL 13", fresh: true, do: func(w *world) {
		app(w, "a").TwoPhase, app(w, "a").TwoPhaseAt = true, app(w, "a").Confirmed
		w.servers["b"].node.ServerVersion = 130016
	}},
	{name: "the consumer has confirmed what the standby has not received, just now", do: func(w *world) { w.catchUp("app") }},
	{name: "the consumer has confirmed what the standby has not received, for longer than an interval", do: func(w *world) {
		w.catchUp("app")
		w.turn()
		w.now = w.now.Add(time.Second)
	}},
	{name: "the same up to the last byte", do: func(w *world) {
		w.catchUp("app")
		w.receive("b", 0x30fff)
		w.turn()
		w.now = w.now.Add(time.Second)
	}},
	{name: "received to the last byte", do: func(w *world) {
		w.catchUp("app")
		w.receive("b", 0x31000)
		w.turn()
		w.now = w.now.Add(time.Second)
	}},
	{name: "the primary is gone, and the consumer was ahead", do: func(w *world) {
		w.catchUp("app")
		w.turn()
		w.servers["a"].up = false
		w.now = w.now.Add(time.Second)
	}},
	{name: "Patroni drops what it does not know", do: func(w *world) { w.manager, w.leader = &cluster.Manager{TTL: 20 * time.Second, UseSlots: true}, "a" }},
	{name: "the slot has moved, the standby has not replayed it", do: func(w *world) { w.catchUp("app") }},
	{name: "the primary is behind its mirror", do: func(w *world) { app(w, "a").Confirmed = cluster.Some(cluster.LSN(0x2ff80)) }},

	{name: "lost on the primary", do: func(w *world) {
		app(w, "a").Invalidated, app(w, "a").Restart = "wal_removed", cluster.None[cluster.LSN]()
	}},
	{name: "lost on the standby: WAL", do: func(w *world) { app(w, "b").Invalidated = "wal_removed" }},
	{name: "lost on the standby: rows", do: func(w *world) { app(w, "b").Invalidated = "rows_removed" }},
	{name: "lost on the standby: wal_level", do: func(w *world) { app(w, "b").Invalidated = "wal_level_insufficient" }},
	{name: "lost on the standby: idle", do: func(w *world) { app(w, "b").Invalidated = "idle_timeout" }},

	{name: "no answer", do: func(w *world) { w.servers["b"].up = false }},
	{name: "no answer in time", do: fact(ReasonStale, "no answer within this cycle's time")},
	{name: "no privilege", do: fact(ReasonNoPrivilege, "role tool on b lacks pg_monitor")},
	{name: "the primary is gone", do: func(w *world) { w.servers["a"].up = false }},
	{name: "the primary and the mirror are gone", do: func(w *world) { w.servers["a"].up = false; delete(w.servers["b"].slots, "app") }},

	{name: "the primary is gone, and another cluster's server answers for the standby", do: func(w *world) {
		w.servers["a"].up, w.servers["b"].node.SystemID = false, 99
	}},
	{name: "the primary is gone, and the standby has no extension", do: func(w *world) {
		w.servers["a"].up = false
		fact(ReasonExtensionUnavailable, "there is no extension slotkeeper in database postgres")(w)
	}},

	{name: "no extension", do: fact(ReasonExtensionUnavailable, "there is no extension slotkeeper in database postgres")},
	{name: "another server behind the address", do: fact(ReasonWrongEndpoint, "pgbouncer answers")},
	{name: "another cluster", do: func(w *world) { w.servers["b"].node.SystemID = 99 }},
	{name: "an older timeline", do: func(w *world) { w.promote("c"); w.servers["b"].node.Timeline = 1 }},
	{name: "past the fork", do: func(w *world) {
		w.servers["a"].node.Timeline, w.servers["a"].node.History = 2, []cluster.Fork{{Timeline: 1, LSN: 0x2fff0}}
		w.servers["b"].node.Timeline, w.servers["c"].node.Timeline = 2, 2
		app(w, "b").ActivePID = 0
		w.refuse = steps(StepApply)
	}},
	{name: "a slot of that name that is not ours", fresh: true, do: func(w *world) {
		w.servers["b"].slots["app"] = &cluster.Slot{Name: "app", Kind: cluster.Logical}
	}},
	{name: "in use on the standby", do: func(w *world) { app(w, "b").ActivePID = 4711 }},
	{name: "wal_level replica", fresh: true, do: func(w *world) { w.servers["b"].node.WalLevel = "replica" }},
	{name: "plugin not installed", fresh: true, do: answer(cluster.CodePluginMissing, `could not access file "wal2json"`)},
	{name: "no slot free", fresh: true, do: func(w *world) { w.servers["b"].node.MaxSlots = 2 }},
	{name: "hold gone, rows gone", do: func(w *world) {
		delete(w.servers["a"].slots, cluster.HoldName)
		w.catchUp("app")
	}},
	{name: "hold gone, the slot still pins, nothing can be held", do: func(w *world) {
		delete(w.servers["a"].slots, cluster.HoldName)
		w.refuse = steps(StepHold)
	}},
	{name: "hold gone, the slot still pins, held again", do: func(w *world) { delete(w.servers["a"].slots, cluster.HoldName) }},
	{name: "hold not saved", do: func(w *world) {
		w.servers["a"].slots[cluster.HoldName].Saved = false
		w.refuse = steps(StepHold)
	}},
	{name: "moved by somebody else", do: func(w *world) { app(w, "b").Confirmed = cluster.Some(cluster.LSN(0x31000)) }},
	{name: "another controller's fence", do: func(w *world) {
		f := w.servers["b"].node.Fence.V
		f.Epoch, f.Owner = 99, "other"
		w.servers["b"].node.Fence = cluster.Some(f)
	}},

	{name: "still being made on the primary", fresh: true, do: func(w *world) { app(w, "a").Confirmed = cluster.None[cluster.LSN]() }},
	{name: "new, made in this cycle", fresh: true},
	{name: "new, the hold cannot be lowered", fresh: true, do: func(w *world) { w.refuse = steps(StepHold) }},
	{name: "new, not received", fresh: true, do: func(w *world) { set(w, 0x2ff00, 0x2fe00) }},
	{name: "new, not replayed", fresh: true, do: func(w *world) { set(w, 0x30000, 0x2fe00) }},
	{name: "new, WAL missing", fresh: true, do: answer(cluster.CodeWALMissing, "the first segment there is 000000010000000000000003")},
	{name: "new, bad snapshot", fresh: true, do: answer(cluster.CodeBadSnapshot, "its checksum is wrong")},
	{name: "new, not provable", fresh: true, do: answer(cluster.CodeNoConsistentPoint, "transaction 811 is running from 0/2FF00 on")},
	{name: "new, not provable, next cycle", fresh: true, turns: 2, do: answer(cluster.CodeNoConsistentPoint, "transaction 811 is running from 0/2FF00 on")},
	{name: "new, beside a session that is older than the hold", fresh: true, do: answer(cluster.CodeOldSession, "4711 (psql) is")},
	{name: "new, beside a session of Patroni's that is older than the hold", fresh: true, do: func(w *world) {
		w.manager, w.leader = &cluster.Manager{TTL: 20 * time.Second, UseSlots: true, Slots: cluster.SlotRules{Ignore: []cluster.SlotMatcher{{}}}}, "a"
		answer(cluster.CodeOldSession, "4711 (Patroni heartbeat) is")(w)
		w.turn()
		w.now = w.now.Add(time.Second)
	}},
	{name: "new, beside a session that is older than the hold and may be ended", fresh: true, do: func(w *world) {
		w.policy.ManageOldSessions = true
		answer(cluster.CodeOldSession, "4711 (psql) is")(w)
		w.turn()
		w.now = w.now.Add(time.Second)
	}},
	{name: "new, database gone", fresh: true, do: answer(cluster.CodeDatabaseGone, "")},
	{name: "new, interrupted", fresh: true, do: answer(cluster.CodeRetry, "canceling statement due to conflict with recovery")},
	{name: "new, the call failed", fresh: true, do: func(w *world) { w.refuse = steps(StepApply) }},
	{name: "WAL of the mirror gone", do: func(w *world) { app(w, "b").WALok = false; w.refuse = steps(StepApply) }},
	{name: "file of the mirror gone", do: func(w *world) { app(w, "b").Snapshot = cluster.SnapshotAbsent; w.refuse = steps(StepApply) }},
	{name: "file of the mirror gone, shipped again", do: func(w *world) { app(w, "b").Snapshot = cluster.SnapshotAbsent }},
	{name: "mirror not saved", do: func(w *world) { app(w, "b").Saved = false }},
}

func set(w *world, receive, replay cluster.LSN) {
	w.servers["b"].node.Receive, w.servers["b"].node.Replay = cluster.Some(receive), cluster.Some(replay)
}

func steps(kind StepKind) func(Step) string {
	return func(s Step) string {
		if s.Kind == kind && (s.Node == "b" || s.Node == "a") {
			return "timeout"
		}
		return ""
	}
}

// fact makes b's read fail for a reason.
func fact(reason Reason, err string) func(*world) {
	return func(w *world) { w.fail = map[string]Fact[NodeRead]{"b": {At: w.now, Err: err, Reason: reason}} }
}

// answer makes b refuse every change.
func answer(code cluster.Code, detail string) func(*world) {
	return func(w *world) { w.answer = map[string]cluster.Outcome{"b": {Code: code, Detail: detail}} }
}
