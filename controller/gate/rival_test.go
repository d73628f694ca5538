package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// b has lost its slot. Each of these leaves c a member that would be taken.
func TestRefusesForAMemberAtTheEdge(t *testing.T) {
	for name, spoil := range map[string]func(f *Facts){
		"synchronous":                       func(f *Facts) { f.Rivals.Value.Sync, f.Rivals.Value.Others[0].Sync = true, true },
		"a quorum that is not in force":     func(f *Facts) { f.Rivals.Value.Quorum = cluster.Some(int64(5)) },
		"no limit to the lag":               func(f *Facts) { f.Rivals.Value.Leader = 1000 },
		"exactly as far behind as it may":   func(f *Facts) { f.Rivals.Value.Leader, f.Rivals.Value.MaximumLag = 300, 100 },
		"ahead of what is known":            func(f *Facts) { f.Rivals.Value.Leader, f.Rivals.Value.MaximumLag = 150, 10 },
		"a ledger as old as it may be":      func(f *Facts) { f.Ledger.Value.At = now.Add(-5 * time.Minute) },
		"just what the consumer has":        func(f *Facts) { f.Ledger.Value.Slots["cdc"] = note(1, 200) },
		"the higher priority is this one's": func(f *Facts) { f.Rivals.Value.Others[0].Priority = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			p, f := scene()
			f.Local.Value.Slots = nil
			spoil(&f)
			if d := decide(p, f); d.Allow || d.Better != "c" {
				t.Errorf("got %+v, want a refusal in favour of c", d)
			}
		})
	}
}

// And each of these does not.
func TestAllowsBesideAMemberThatIsNoHelp(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(f *Facts)
		says  string
	}{
		"both have priority 0": {func(f *Facts) {
			f.Rivals.Value.Me.Priority, f.Rivals.Value.Others[0].Priority = 0, 0
		}, "c: its failover_priority is 0"},
		"one byte too far behind": {func(f *Facts) {
			f.Rivals.Value.Leader, f.Rivals.Value.MaximumLag = 202, 1
		}, "c: it is 2 bytes behind"},
		"it misses what the consumer has": {func(f *Facts) {
			f.Ledger.Value.Slots["cdc"] = note(1, 201)
		}, "c: the consumer of cdc has confirmed 0/C9, it has received 0/C8"},
		"two, each for its own reason": {func(f *Facts) {
			f.Rivals.Value.Others[0].NoFailover = true
			f.Rivals.Value.Others = append(f.Rivals.Value.Others, Candidate{Name: "d", Trouble: "it is silent"})
		}, "c: it is tagged nofailover; d: it is silent"},
		"nobody is there": {func(f *Facts) { f.Rivals.Value.Others = nil }, "there is no other member"},
		"the ledger is old, and says no more of c than of b": {func(f *Facts) {
			f.Ledger.Value.At = now.Add(-5*time.Minute - time.Second)
		}, "; the last controller wrote 5m1s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := scene()
			f.Local.Value.Slots = nil
			c.spoil(&f)
			d := decide(p, f)
			if !d.Allow || d.Code != plan.CondNoSafeCandidate || !strings.Contains(d.Line, c.says) {
				t.Errorf("got %+v, want no_safe_candidate, saying %q", d, c.says)
			}
		})
	}
}

// Whatever the order in which they are named.
func TestTakesTheBestOfAnyOrder(t *testing.T) {
	more, c, d := Candidate{Name: "e", Received: 300, Timeline: 1, Priority: 1}, Candidate{Name: "c", Received: 200, Timeline: 1, Priority: 1}, Candidate{Name: "d", Received: 200, Timeline: 1, Priority: 1}
	for _, others := range [][]Candidate{{more, c, d}, {c, more, d}, {d, c, more}, {c, d, more}, {more, d, c}, {d, more, c}} {
		p, f := scene()
		f.Local.Value.Slots = nil
		for _, name := range []string{"d", "e"} {
			f.Ledger.Value.Verdicts[pairOf("cdc", name)] = plan.Verdict{State: plan.Safe}
		}
		f.Rivals.Value.Others = others
		if d := decide(p, f); d.Better != "e" {
			t.Errorf("of %+v: in favour of %q, want e", others, d.Better)
		}
		f.Rivals.Value.Others = slices.DeleteFunc(slices.Clone(others), func(one Candidate) bool { return one.Name == "e" })
		if d := decide(p, f); d.Better != "c" {
			t.Errorf("of %+v: in favour of %q, want c", f.Rivals.Value.Others, d.Better)
		}
	}
}

// Where the ledger cannot be read nothing is known of c, although nothing speaks against it.
func TestNobodyIsBetterWithoutALedger(t *testing.T) {
	p, f := scene()
	f.Ledger = plan.Fact[Ledger]{Err: "etcd does not answer"}
	if d := decide(p, f); !d.Allow || d.Code != "unknown" || d.Better != "" {
		t.Errorf("got %+v", d)
	}
}

// What was not read at all is not a primary, whatever the empty answer looks like.
func TestAServerThatDoesNotAnswerIsNoPrimary(t *testing.T) {
	p, f := scene()
	f.Local = plan.Fact[Local]{Err: "time is up"}
	f.Rivals.Value.Others = nil
	d := decide(p, f)
	if !d.Allow || d.Code != "unknown" || !strings.HasPrefix(d.Line, "allow: b is not known to be safe: its server could not be read: time is up;") {
		t.Errorf("got %+v", d)
	}
	p.Mode = Strict
	if d := decide(p, f); d.Allow || d.Code != "strict" {
		t.Errorf("strict: %+v", d)
	}
}
