package plan

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
)

var update = flag.Bool("update", false, "write testdata/verdicts.golden anew")

// situation is one row of the verdict table: something done to a settled world
// in which slot app is mirrored on b and c, or to a new one.
type situation struct {
	name  string
	fresh bool // the slot is new: nothing is mirrored
	do    func(w *world)
	turns int // cycles after it, 0 for one
}

var app = func(w *world, node string) *cluster.Slot { return w.servers[node].slots["app"] }

var situations = []situation{
	{name: "all is well"},
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

func (s situation) run() *world {
	w := newWorld("b", "c")
	if s.fresh {
		w.turns(2)
	}
	w.createSlot("app")
	if !s.fresh {
		w.turns(3)
	}
	if s.do != nil {
		s.do(w)
	}
	w.turns(max(s.turns, 1))
	return w
}

func TestVerdictTable(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintln(&b, "# What is said of slot app on standby b. Made by: go test ./controller/plan -run TestVerdictTable -update")
	for _, s := range situations {
		w := s.run()
		v := w.verdict("app", "b")
		fmt.Fprintf(&b, "\n%s\n  %s", s.name, v.State)
		if v.Reason != "" {
			fmt.Fprintf(&b, "(%s)", v.Reason)
		}
		fmt.Fprintf(&b, "  %s\n", v.Message)
		if v.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", v.Hint)
		}
		var codes []string
		for _, c := range w.conditions {
			codes = append(codes, strings.TrimSpace(c.Code+" "+c.Subject))
		}
		if len(codes) > 0 {
			fmt.Fprintf(&b, "  conditions: %s\n", strings.Join(codes, ", "))
		}
		if c := w.verdict("app", "c"); c.State != "" && c.State != Safe {
			fmt.Fprintf(&b, "  on c: %s(%s)\n", c.State, c.Reason)
		}
	}
	path := filepath.Join("testdata", "verdicts.golden")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
}

// Every reason that static topology can show has a row in the table.
func TestVerdictTableHasEveryReason(t *testing.T) {
	elsewhere := map[Reason]bool{
		ReasonPatroniWillDrop: true, ReasonTwoPhaseUnsupported: true, ReasonConsumerAhead: true, // later issues
	}
	seen := map[Reason]bool{}
	for _, s := range situations {
		seen[s.run().verdict("app", "b").Reason] = true
	}
	for _, r := range []Reason{
		"", ReasonWALRemoved, ReasonRowsRemoved, ReasonWalLevelInsufficient, ReasonIdleTimeout, ReasonUnreachable, ReasonStale, ReasonNoPrivilege,
		ReasonExtensionUnavailable, ReasonWrongEndpoint, ReasonTimelineMismatch, ReasonNotOurs, ReasonInUse, ReasonWalLevel, ReasonPluginMissing,
		ReasonNoFreeSlot, ReasonPatroniWillDrop, ReasonTwoPhaseUnsupported, ReasonProtectionGap, ReasonHoldNotSaved, ReasonSlotMissing,
		ReasonConsumerAhead, ReasonMirrorAhead, ReasonFenced, ReasonNew, ReasonReceiveLag, ReasonReplayLag, ReasonWALMissing, ReasonBadSnapshot,
		ReasonNoConsistentPoint, ReasonDatabaseGone, ReasonBusy,
	} {
		if !seen[r] && !elsewhere[r] {
			t.Errorf("no situation gives %q", r)
		}
	}
}

func TestConditionsSayWhatTheyShould(t *testing.T) {
	w := settled(t)
	w.servers["b"].node.Feedback = false
	w.servers["b"].node.PrimarySlotName, w.servers["c"].node.PrimarySlotName = "gone", "dead"
	w.servers["a"].slots["dead"] = &cluster.Slot{Name: "dead", Kind: cluster.Physical, Invalidated: "wal_removed"}
	w.turn()
	for _, code := range []string{CondFeedbackOff, CondPhysicalSlotMissing, CondPhysicalSlotInvalidated} {
		if !w.has(code) {
			t.Errorf("no %s in %v", code, w.conditions)
		}
	}
	since := w.conditions[0].Since
	w.turn()
	if w.conditions[0].Since != since {
		t.Error("the condition is dated anew")
	}
	if w.has(CondNoSafeCandidate) {
		t.Error("no_safe_candidate although all is SAFE")
	}
	w.servers["b"].up, w.servers["c"].up = false, false
	w.turn()
	if !w.has(CondNoSafeCandidate) {
		t.Error("no_safe_candidate is missing")
	}
}

// What an unselected slot's mirror keeps must be said by somebody.
func TestMirrorsOfUnselectedSlotsAreTold(t *testing.T) {
	w := settled(t)
	w.createSlot("other")
	w.turns(3)
	w.policy.Exclude = []Match{{Name: "app"}}
	w.turns(3)
	told := 0
	for _, cond := range w.conditions {
		if cond.Code == CondMirrorUnselected {
			told++
			if !strings.Contains(cond.Message, "select: app; ") {
				t.Errorf("it says %q", cond.Message)
			}
		}
	}
	if told != 2 || w.servers["b"].slots["app"] == nil {
		t.Errorf("%d conditions, want one for each standby, and the mirror left where it is: %v", told, w.conditions)
	}
	delete(w.servers["b"].slots, "app")
	delete(w.servers["c"].slots, "app")
	w.turn()
	if w.has(CondMirrorUnselected) {
		t.Error("it is told still")
	}
}

// A fence of another etcd does not go away by itself: the hint says how it does.
func TestAForeignFenceHasAWayOut(t *testing.T) {
	w := settled(t)
	for _, s := range w.servers {
		s.node.Fence.V.Store = "gone"
	}
	w.turn()
	hints := []string{w.conditions[0].Hint}
	for _, v := range w.verdicts {
		hints = append(hints, v.Hint)
	}
	for _, hint := range hints {
		if !strings.Contains(hint, "remove_fence") {
			t.Errorf("the hint is %q", hint)
		}
	}
	if !w.has(CondForeignEpoch) || len(w.verdicts) != 2 {
		t.Errorf("the scene is not set: %v %v", w.conditions, w.verdicts)
	}
}

func TestStuckRestartAndLag(t *testing.T) {
	w := settled(t)
	w.write(100 << 20)
	app(w, "a").Confirmed = w.primary().node.Insert
	w.receive("b", w.primary().node.Insert.V)
	w.receive("c", w.primary().node.Insert.V)
	w.turn()
	w.now = w.now.Add(6 * time.Minute)
	w.turn()
	if !w.has(CondRestartStuck) || !w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}

func TestWhatTheCycleCatchesUpWithIsNoLag(t *testing.T) {
	w := settled(t)
	w.write(100 << 20)
	app(w, "a").Confirmed = w.primary().node.Insert
	w.replayAll()
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
	if w.has(CondLag) {
		t.Errorf("conditions %v", w.conditions)
	}
}

// A mirror whose plugin may be used no longer would fail its consumer.
func TestPluginWithdrawnFromAMirror(t *testing.T) {
	w := settled(t)
	answer(cluster.CodePluginMissing, `"wal2json" is not among output_plugin_libraries`)(w)
	w.catchUp("app")
	w.replayAll()
	w.turns(3)
	w.mustBe(t, "app", "b", Unsafe, ReasonPluginMissing)
	w.mustBe(t, "app", "c", Safe, "")
	w.answer = nil
	w.now = w.now.Add(DefaultInterval)
	w.turn()
	w.mustBe(t, "app", "b", Safe, "")
}
