package switchover

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// leadsNow has b lead on timeline 2, with the others behind it: nothing speaks against
// a switchover from there either.
func (f *Facts) leadsNow() {
	f.led("b", 2)
	f.Nodes["a"] = known(replica(2, 5000, slot("cdc", 4000)))
	f.Nodes["c"] = known(replica(2, 4900, slot("cdc", 4000)))
	f.Keys.Value.Members[0].Running = true
	f.Status = known(safeStatus("b", 2, "a", "c"))
}

// A yes is to what was asked, and to nothing that has come about since.
func TestConsentIsToWhatWasAsked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *Facts)
		says   string
	}{
		"another candidate": {func(f *Facts) { f.Keys.Value.Members[1].NoFailover = true }, "agreed to was from a to b on timeline 1; by now it would be from a to c"},
		"another leader":    {(*Facts).leadsNow, "by now it would be from b to a on timeline 2"},
	} {
		t.Run(name, func(t *testing.T) {
			p, m, f := scene()
			p.Yes = false
			d, m := Next(p, m, f)
			want(t, d, "confirm", Confirm, "from a to b")
			f.Agreed = cluster.Some(d.Asks)
			c.change(&f)
			d, m = Next(p, m, f)
			want(t, d, "confirm", Confirm, c.says)
			f.Agreed = cluster.Some(d.Asks)
			d, _ = Next(p, m, f)
			want(t, d, "record", Write, "")
		})
	}
}

// --yes is from the leader of that moment, to any candidate that preflight takes.
func TestYesIsFromThisLeader(t *testing.T) {
	p, m, f := scene()
	f.node("b", func(n *Node) { n.Slots = nil })
	d, m := Next(p, m, f)
	want(t, d, "catch_up", Wait, "the mirror of cdc is not there")
	f.Keys.Value.Members[1].NoFailover = true
	d, _ = Next(p, m, f)
	if want(t, d, "record", Write, ""); d.Record.Candidate != "c" {
		t.Errorf("takes %q", d.Record.Candidate)
	}
	f.leadsNow()
	f.Keys.Value.Members[1].NoFailover = false
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeRefused, false, "when this run began a led on timeline 1, and now b leads on timeline 2")
	// The same one, after a restart that was a promotion.
	p, m, f = scene()
	p.To = "b"
	f.node("b", func(n *Node) { n.Slots = nil })
	_, m = Next(p, m, f)
	f.node("a", func(n *Node) { n.Node.Timeline = 2 })
	f.Nodes["b"] = known(replica(2, 5000, slot("cdc", 4000)))
	f.Status = known(safeStatus("a", 2, "b", "c"))
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeRefused, false, "now a leads on timeline 2")
}

// Once the time is over nothing is asked any more, neither the operator nor Patroni.
func TestNothingIsAskedTooLate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Policy, m Memory, f *Facts)
		drop   bool
	}{
		"the operator": {func(p *Policy, _ Memory, _ *Facts) { p.Yes = false }, false},
		"the record":   {func(*Policy, Memory, *Facts) {}, false},
		"Patroni": {func(p *Policy, m Memory, f *Facts) {
			d, _ := Next(*p, m, *f)
			f.Record = known(cluster.Some(d.Record))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, m, f := scene()
			c.change(&p, m, &f)
			f.Now = begun.Add(p.Timeout + time.Second)
			d, _ := Next(p, m, f)
			wantEnd(t, d, OutcomeNotCaughtUp, c.drop, "over before Patroni could be asked nothing was asked")
			if d.Result.Outcome.ExitCode() != 6 {
				t.Error(d.Result.Outcome.ExitCode())
			}
		})
	}
	// The operator's own time to think is none of it.
	p, m, f := scene()
	p.Yes = false
	d, m := Next(p, m, f)
	f.Now = begun.Add(2 * p.Timeout)
	d.Asks.At = f.Now
	f.Agreed = cluster.Some(d.Asks)
	d, _ = Next(p, m, f)
	want(t, d, "record", Write, "")
}
