package switchover

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// An old primary that does not become SAFE again does not stand in the way of the next
// switchover, once that is asked for by name. The same command goes on watching.
func TestNextSwitchover(t *testing.T) {
	over := func(leader string) (Policy, Facts) {
		p, _, f := underway("before")
		f.led(leader, 2)
		for _, name := range []string{"a", "b", "c"} {
			if name != leader {
				f.Nodes[name] = known(replica(2, 6000, slot("cdc", 4000)))
			}
		}
		f.Keys.Value.Members[0].Running = true
		f.Status = known(safeStatus(leader, 2, "a", "b", "c"))
		f.Status.Value.ObservedAt = begun.Add(time.Second)
		f.Status.Value.Slots[0].Standbys[0].Verdict = plan.Unsafe
		f.verified(Found{Name: "cdc", There: true, Usable: true})
		return p, f
	}
	for name, c := range map[string]struct {
		leader, to string
		begins     bool
		refused    string
	}{
		"no name":                   {"b", "", false, ""},
		"the same":                  {"b", "b", false, ""},
		"another":                   {"b", "c", true, ""},
		"the one that was not":      {"c", "b", true, ""},
		"the one that leads by now": {"c", "c", false, "has not ended"},
		"one that is not SAFE":      {"b", "a", false, "slots would not survive on a"},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := over(c.leader)
			p.To = c.to
			d, m := Next(p, Memory{ID: "me", Begun: begun}, f)
			if c.begins {
				if want(t, d, "preflight", Remove, c.leader+" leads. What became of a is not waited for"); d.ID != "before" {
					t.Errorf("removes %q", d.ID)
				}
				return
			}
			if c.refused != "" {
				wantEnd(t, d, OutcomeRefused, false, c.refused)
				// It is about the next one where that was what it would have begun.
				if r := d.Result; r.From == c.leader != (c.to != c.leader) || r.Resumed != (c.to == c.leader) {
					t.Errorf("it tells of %s to %s, resumed %v", r.From, r.To, r.Resumed)
				}
				return
			}
			want(t, d, "old_primary", Wait, "cdc is UNSAFE")
			f.Now = begun.Add(p.Timeout + time.Second)
			d, _ = Next(p, m, f)
			wantEnd(t, d, OutcomeRunning, false, "--to with another name than "+c.leader+" begins the next")
		})
	}
	// A run that has seen it happen tells of it, whoever leads.
	p, m, f := underway("before")
	p.To = "b"
	_, m = Next(p, m, f)
	f.led("c", 2)
	d, _ := Next(p, m, f)
	want(t, d, "slots", Verify, "slots on c")
	p, m, f = underway("me")
	f.led("c", 2)
	p.To = "b"
	d, _ = Next(p, m, f)
	want(t, d, "slots", Verify, "slots on c")
}

// What ends a wait that a longer or another run would not end is said.
func TestHintsAtTheEnd(t *testing.T) {
	p, m, f := underway("before")
	p.GiveUp = "etcdctl del /slotkeeper/shop/switchover"
	f.Record.Value.V.Timeline = 5
	d, _ := after(t, p, m, f, p.Timeout+time.Second)
	wantEnd(t, d, OutcomeRunning, false, "where that is never to come, \"etcdctl del /slotkeeper/shop/switchover\" gives it up")

	p, m, f = underway("before")
	p.Timeout = quiet(f.Keys.Value)
	d, _ = after(t, p, m, f, p.Timeout-time.Second)
	want(t, d, "handover", Wait, "nothing of the request")
	m.Begun = begun.Add(-2 * time.Second)
	d, _ = after(t, p, m, f, p.Timeout-time.Second)
	wantEnd(t, d, OutcomeRunning, false, "with a --timeout longer than 25s")
}
