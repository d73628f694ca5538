package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var birth = cluster.Some(now.Add(-time.Hour))

func source(inode uint64) cluster.Incarnation { return cluster.Incarnation{Inode: inode, Birth: birth} }

// mirror is a proven mirror of the slot with that inode, on timeline 1, of generation 4.
func mirror(name string, inode uint64) cluster.Slot {
	return cluster.Slot{
		Name: name, Kind: cluster.Logical, Plugin: "pgoutput", Database: "shop",
		Restart: cluster.Some(cluster.LSN(90)), Confirmed: cluster.Some(cluster.LSN(100)), CatalogXmin: cluster.Some(cluster.XID(700)),
		WALok: true, Snapshot: cluster.SnapshotValid,
		Marker: &cluster.Marker{Kind: cluster.MarkMirror, Scope: "shop", Timeline: 1, Generation: 4, Source: source(inode), Way: "file"},
	}
}

func note(inode uint64, confirmed cluster.LSN) plan.SlotNote {
	return plan.SlotNote{Plugin: "pgoutput", Database: "shop", Incarnation: source(inode), HighestF: confirmed}
}

func known[T any](v T) plan.Fact[T] { return plan.Fact[T]{Value: v, At: now} }

// scene: b is asked, c is the other standby; one slot, safe on both, all WAL received.
func scene() (Policy, Facts) {
	p := Policy{Scope: "shop", Mode: Prefer, MaxRefusals: 3, MaxProofAge: 5 * time.Minute}
	f := Facts{
		Node: "b",
		Local: known(Local{
			Node:   cluster.Node{Timeline: 1, InRecovery: true, Receive: cluster.Some(cluster.LSN(200)), Replay: cluster.Some(cluster.LSN(200))},
			Slots:  []cluster.Slot{mirror("cdc", 1)},
			Proofs: map[string]Proof{"cdc": {Way: "file"}},
		}),
		Ledger: known(Ledger{
			At: now.Add(-10 * time.Second), Timeline: 1,
			Slots:  map[string]plan.SlotNote{"cdc": note(1, 100)},
			Floors: map[string]int64{"b": 4, "c": 4},
			Verdicts: map[plan.Pair]plan.Verdict{
				{Slot: "cdc", Standby: "b"}: {State: plan.Safe},
				{Slot: "cdc", Standby: "c"}: {State: plan.Safe},
			},
		}),
		Rivals: known(Field{
			Me:     Candidate{Name: "b", Received: 200, Timeline: 1, Priority: 1},
			Others: []Candidate{{Name: "c", Received: 200, Timeline: 1, Priority: 1}},
		}),
	}
	return p, f
}

func decide(p Policy, f Facts) Decision { return Decide(now, p, f) }

func TestSafe(t *testing.T) {
	d := decide(scene())
	if !d.Allow || d.Code != "safe" || len(d.Drop) > 0 || d.Line != "allow: b can serve 1 slot" {
		t.Errorf("got %+v", d)
	}
}

// Each way in which one slot would be lost. With c safe the node is refused, and
// named; drop says whether the slot goes before the node is let through.
func TestFindings(t *testing.T) {
	slot := func(f *Facts) *cluster.Slot { return &f.Local.Value.Slots[0] }
	cases := map[string]struct {
		spoil  func(f *Facts)
		reason plan.Reason
		drop   bool
	}{
		"in use": {func(f *Facts) { slot(f).ActivePID = 4711 }, plan.ReasonInUse, false},
		"moved by somebody": {func(f *Facts) {
			f.Ledger.Value.Verdicts[plan.Pair{Slot: "cdc", Standby: "b"}] = plan.Verdict{State: plan.Unsafe, Reason: plan.ReasonMirrorAhead}
		}, plan.ReasonMirrorAhead, true},
		"used, and left beyond": {func(f *Facts) {
			f.Ledger.Value.Verdicts[plan.Pair{Slot: "cdc", Standby: "b"}] = plan.Verdict{State: plan.Unsafe, Reason: plan.ReasonInUse}
			slot(f).Confirmed = cluster.Some(cluster.LSN(101))
		}, plan.ReasonMirrorAhead, true},
		"missing": {func(f *Facts) { f.Local.Value.Slots = nil }, plan.ReasonSlotMissing, false},
		"foreign": {func(f *Facts) { slot(f).Marker = nil }, plan.ReasonNotOurs, false},
		"foreign scope": {func(f *Facts) {
			m := *slot(f).Marker
			m.Scope = "other"
			slot(f).Marker = &m
		}, plan.ReasonNotOurs, false},
		"left original":    {func(f *Facts) { slot(f).Marker.Kind = cluster.MarkOriginal }, plan.ReasonProtectionGap, true},
		"rows removed":     {func(f *Facts) { slot(f).Invalidated = "rows_removed" }, plan.ReasonRowsRemoved, true},
		"wal removed":      {func(f *Facts) { slot(f).Invalidated = "wal_removed" }, plan.ReasonWALRemoved, true},
		"no position":      {func(f *Facts) { slot(f).Restart = cluster.None[cluster.LSN]() }, plan.ReasonProtectionGap, true},
		"WAL gone":         {func(f *Facts) { slot(f).WALok = false }, plan.ReasonWALMissing, true},
		"no proof":         {func(f *Facts) { f.Local.Value.Proofs["cdc"] = Proof{} }, plan.ReasonNoConsistentPoint, true},
		"no answer":        {func(f *Facts) { f.Local.Value.Proofs["cdc"] = Proof{Err: "time is up"} }, plan.ReasonUnreachable, false},
		"older generation": {func(f *Facts) { slot(f).Marker.Generation = 3 }, plan.ReasonProtectionGap, true},
		"left behind": {func(f *Facts) {
			f.Local.Value.Slots = append(f.Local.Value.Slots, cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical,
				Marker: &cluster.Marker{Kind: cluster.MarkHold, Scope: "shop", Generation: 5}})
		}, plan.ReasonProtectionGap, true},
		"gap seen": {func(f *Facts) {
			f.Ledger.Value.Verdicts[plan.Pair{Slot: "cdc", Standby: "b"}] = plan.Verdict{State: plan.Unsafe, Reason: plan.ReasonProtectionGap}
		}, plan.ReasonProtectionGap, true},
		"a reign that nobody saw": {func(f *Facts) {
			f.Local.Value.Node.Timeline, f.Rivals.Value.Me.Timeline, f.Rivals.Value.Others[0].Timeline = 2, 2, 2
		}, plan.ReasonProtectionGap, true},
		"earlier slot": {func(f *Facts) { f.Ledger.Value.Slots["cdc"] = note(2, 100) }, plan.ReasonProtectionGap, true},
		"consumer ahead": {func(f *Facts) {
			f.Local.Value.Node.Receive, f.Local.Value.Node.Replay = cluster.Some(cluster.LSN(99)), cluster.Some(cluster.LSN(99))
		}, plan.ReasonConsumerAhead, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, f := scene()
			c.spoil(&f)
			d := decide(p, f)
			if d.Allow || d.Better != "c" || d.Code != "better_candidate" {
				t.Fatalf("got %+v, want a refusal in favour of c", d)
			}
			if len(d.Findings) != 1 || d.Findings[0].Reason != c.reason || d.Findings[0].Drop != c.drop {
				t.Errorf("found %+v, want %s, drop %v", d.Findings, c.reason, c.drop)
			}
			if !strings.Contains(d.Line, "cdc "+string(c.reason)) || !strings.Contains(d.Line, "refuse (1 of 3)") || strings.Contains(d.Line, "\n") {
				t.Errorf("the line is %q", d.Line)
			}
			p.Mode = Observe
			if d := decide(p, f); !d.Allow || d.Code != "observed" || slices.Contains(d.Drop, "cdc") != c.drop {
				t.Errorf("observed: %+v", d)
			}
		})
	}
}

// A mirror proven on an earlier timeline counts where the ledger shows it safe on this one.
func TestProvenBeforeAndSeenSince(t *testing.T) {
	p, f := scene()
	f.Local.Value.Node.Timeline, f.Ledger.Value.Timeline = 2, 2
	if d := decide(p, f); !d.Allow || d.Code != "safe" {
		t.Errorf("got %+v", d)
	}
}

// Nor is a ledger too old that is just as old as it may be.
func TestALedgerAsOldAsItMayBe(t *testing.T) {
	p, f := scene()
	f.Ledger.Value.At = now.Add(-p.MaxProofAge)
	if d := decide(p, f); !d.Allow || d.Code != "safe" {
		t.Errorf("got %+v", d)
	}
}

// The exact boundary: what the consumer has confirmed ends where the WAL does.
func TestConsumerAtTheEndOfTheWAL(t *testing.T) {
	p, f := scene()
	f.Local.Value.Node.Receive, f.Local.Value.Node.Replay = cluster.Some(cluster.LSN(100)), cluster.Some(cluster.LSN(100))
	if d := decide(p, f); !d.Allow || d.Code != "safe" {
		t.Errorf("got %+v", d)
	}
}

// Each reason why the other member is no help: then this one is let through at
// once, and the line says what that costs and why nobody else was taken.
func TestRefusesOnlyForAMemberThatIsTaken(t *testing.T) {
	other := func(f *Facts) *Candidate { return &f.Rivals.Value.Others[0] }
	cases := map[string]struct {
		spoil func(p *Policy, f *Facts)
		says  string
	}{
		"silent":     {func(_ *Policy, f *Facts) { other(f).Trouble = "its REST interface does not answer" }, "does not answer"},
		"nofailover": {func(_ *Policy, f *Facts) { other(f).NoFailover = true }, "nofailover"},
		"priority 0": {func(_ *Policy, f *Facts) { other(f).Priority = 0 }, "failover_priority is 0"},
		"priority":   {func(_ *Policy, f *Facts) { f.Rivals.Value.Me.Priority = 2 }, "failover_priority is 1"},
		"behind":     {func(_ *Policy, f *Facts) { other(f).Received = 199 }, "1 bytes less WAL"},
		"timeline":   {func(_ *Policy, f *Facts) { other(f).Timeline = 2 }, "timeline 2"},
		"sync":       {func(_ *Policy, f *Facts) { f.Rivals.Value.Sync = true }, "not synchronous"},
		"lag": {func(_ *Policy, f *Facts) {
			f.Rivals.Value.Leader, f.Rivals.Value.MaximumLag = 1000, 100
		}, "800 bytes behind"},
		"alone":      {func(_ *Policy, f *Facts) { f.Rivals.Value.Others = nil }, "no other member"},
		"unknown":    {func(_ *Policy, f *Facts) { f.Rivals.Err = "etcd does not answer" }, "etcd does not answer"},
		"old ledger": {func(_ *Policy, f *Facts) { f.Ledger.Value.At = now.Add(-time.Hour) }, "1h0m0s old"},
		"unsafe too": {func(_ *Policy, f *Facts) {
			f.Ledger.Value.Verdicts[plan.Pair{Slot: "cdc", Standby: "c"}] = plan.Verdict{State: plan.Pending, Reason: plan.ReasonReplayLag}
		}, "replay_lag"},
		"never heard of": {func(_ *Policy, f *Facts) { delete(f.Ledger.Value.Verdicts, plan.Pair{Slot: "cdc", Standby: "c"}) }, "nothing is known"},
		"spent":          {func(_ *Policy, f *Facts) { f.Refusals = 3 }, "after 3 refusals"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, f := scene()
			f.Local.Value.Slots = nil
			c.spoil(&p, &f)
			d := decide(p, f)
			if !d.Allow || !strings.Contains(d.Line, c.says) || !strings.Contains(d.Line, "cdc slot_missing") {
				t.Errorf("got %+v, want it let through, saying %q", d, c.says)
			}
		})
	}
}

// In favour of the one that has received the most, else by name.
func TestTakesTheBestOther(t *testing.T) {
	p, f := scene()
	f.Local.Value.Slots = nil
	f.Rivals.Value.Others = append(f.Rivals.Value.Others, Candidate{Name: "d", Received: 300, Timeline: 1, Priority: 1})
	f.Ledger.Value.Verdicts[plan.Pair{Slot: "cdc", Standby: "d"}] = plan.Verdict{State: plan.Safe}
	if d := decide(p, f); d.Better != "d" {
		t.Errorf("in favour of %q, want d: %s", d.Better, d.Line)
	}
	f.Rivals.Value.Others[1].Received = 200
	if d := decide(p, f); d.Better != "c" {
		t.Errorf("in favour of %q, want c: %s", d.Better, d.Line)
	}
}

// What is settled is the same whatever the others are, and what is not depends on them.
func TestSettled(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(p *Policy, f *Facts)
		settled bool
	}{
		"safe":             {func(*Policy, *Facts) {}, true},
		"unsafe":           {func(_ *Policy, f *Facts) { f.Local.Value.Slots = nil }, false},
		"unsafe, observed": {func(p *Policy, f *Facts) { f.Local.Value.Slots, p.Mode = nil, Observe }, true},
		"unsafe, strict":   {func(p *Policy, f *Facts) { f.Local.Value.Slots, p.Mode = nil, Strict }, true},
		"no ledger":        {func(_ *Policy, f *Facts) { f.Ledger.Err = "late" }, false},
		"no server":        {func(_ *Policy, f *Facts) { f.Local.Err = "late" }, false},
		// They may still come, and say more than what would be said without them.
		"no ledger, observed": {func(p *Policy, f *Facts) { f.Ledger.Err, p.Mode = "late", Observe }, false},
		"no server, strict":   {func(p *Policy, f *Facts) { f.Local.Err, p.Mode = "late", Strict }, false},
	} {
		p, f := scene()
		c.spoil(&p, &f)
		if Settled(now, p, f) != c.settled {
			t.Errorf("%s: settled is %t", name, !c.settled)
		}
		before := decide(p, f)
		f.Rivals, f.Refusals = plan.Fact[Field]{Err: "late"}, 2
		if after := decide(p, f); c.settled && (after.Allow != before.Allow || after.Line != before.Line) {
			t.Errorf("%s: %q becomes %q", name, before.Line, after.Line)
		}
	}
}

func TestUnknown(t *testing.T) {
	for name, spoil := range map[string]func(f *Facts){
		"the server hangs": func(f *Facts) { f.Local.Err = "time is up" },
		"etcd is down":     func(f *Facts) { f.Ledger.Err = "etcd does not answer" },
		"an old ledger":    func(f *Facts) { f.Ledger.Value.At = now.Add(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			p, f := scene()
			spoil(&f)
			f.Rivals.Value.Others = nil
			if d := decide(p, f); !d.Allow || d.Code != "unknown" || len(d.Drop) > 0 {
				t.Errorf("prefer: %+v", d)
			}
			p.Mode = Strict
			if d := decide(p, f); d.Allow || !strings.Contains(d.Line, "promotion.policy") {
				t.Errorf("strict: %+v", d)
			}
		})
	}
}

// A server that hangs is no reason to be promoted over one that is safe.
func TestUnknownBesideASafeOne(t *testing.T) {
	p, f := scene()
	f.Local.Err = "time is up"
	f.Rivals.Value.Me.Received, f.Rivals.Value.Me.Timeline = 0, 0
	if d := decide(p, f); d.Allow || d.Better != "c" {
		t.Errorf("got %+v", d)
	}
}

// What is known to be gone, or never was, is not waited for; a server's own copy counts.
func TestExpectsWhatThePrimaryHad(t *testing.T) {
	p, f := scene()
	gone, lostBefore, unproven := note(5, 50), note(6, 50), note(7, 50)
	gone.AbsentReads, lostBefore.LostWith, unproven.Unproven = 1, 1, true
	f.Ledger.Value.Slots["gone"], f.Ledger.Value.Slots["lost"], f.Ledger.Value.Slots["bad"] = gone, lostBefore, unproven
	f.Ledger.Value.Slots["native"] = note(8, 100)
	native := mirror("native", 8)
	native.Marker, native.Synced = nil, true
	f.Local.Value.Slots = append(f.Local.Value.Slots, native)
	if d := decide(p, f); !d.Allow || d.Code != "safe" {
		t.Errorf("got %+v", d)
	}
}

// A primary's own slots are no mirrors that lack a proof.
func TestAPrimaryKeepsItsSlots(t *testing.T) {
	p, f := scene()
	f.Local.Value.Node.InRecovery = false
	f.Local.Value.Slots[0].Marker.Kind = cluster.MarkOriginal
	for _, p.Mode = range []Mode{Prefer, Strict, Observe} {
		if d := decide(p, f); !d.Allow || d.Code != "primary" || len(d.Drop) > 0 {
			t.Errorf("%s: %+v", p.Mode, d)
		}
	}
}

func TestNoSlotsNoQuestion(t *testing.T) {
	p, f := scene()
	p.Mode = Strict
	f.Local.Value.Slots = nil
	f.Ledger = known(Ledger{})
	if d := decide(p, f); !d.Allow || d.Code != "safe" {
		t.Errorf("got %+v", d)
	}
}

func TestLongListsAreCounted(t *testing.T) {
	p, f := scene()
	for _, name := range []string{"s1", "s2", "s3", "s4", "s5"} {
		f.Ledger.Value.Slots[name] = note(9, 10)
	}
	d := decide(p, f)
	if len(d.Findings) != 5 || !strings.Contains(d.Line, "and 2 more") || strings.Contains(d.Line, "s4") {
		t.Errorf("got %q", d.Line)
	}
}
