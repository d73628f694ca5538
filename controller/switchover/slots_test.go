package switchover

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// A consumer that was at work may have confirmed up to the end of the timeline; one
// that was not, no more than was seen.
func TestDuplicatesBound(t *testing.T) {
	for name, c := range map[string]struct {
		work func(f *Facts)
		want int64
	}{
		"idle":      {func(*Facts) {}, 0},
		"connected": {func(f *Facts) { f.node("a", func(n *Node) { n.Slots[0].ActivePID = 5 }) }, 1100},
		"ahead":     {func(f *Facts) { f.node("b", func(n *Node) { n.Slots = []cluster.Slot{slot("cdc", 4050)} }) }, 1050},
		"moving":    {func(f *Facts) { f.node("a", func(n *Node) { n.Slots[0].Confirmed = cluster.Some(cluster.LSN(4100)) }) }, 1100},
	} {
		t.Run(name, func(t *testing.T) {
			p, m, f := underway("me")
			_, m = Next(p, m, f)
			c.work(&f)
			old := f.Nodes["a"]
			old.At = f.Now.Add(time.Second)
			f.Nodes["a"] = old
			_, m = Next(p, m, f)
			f.silent("a", "gone")
			f.Record.Value.V.Last = cluster.Some(m.LastWritable)
			f.led("b", 2)
			f.verified(Found{Name: "cdc", There: true, Usable: true, Restart: cluster.Some(cluster.LSN(3990)), Confirmed: cluster.Some(cluster.LSN(4500))})
			d, _ := Next(p, m, f)
			want(t, d, "old_primary", Wait, "gone")
			if got := judgeSlots(recalled(m, f), f)[0]; got.Duplicates.V != c.want || got.Mirror.V != m.Before["cdc"].Mirror.V.Confirmed {
				t.Errorf("%+v", got)
			}
		})
	}
}

func recalled(m Memory, f Facts) Memory {
	m, _ = m.keep(f)
	return m.observe(f)
}

func TestOldPrimary(t *testing.T) {
	cases := map[string]struct {
		change func(f *Facts)
		says   string
	}{
		"silent":           {func(f *Facts) { f.silent("a", "shutting down") }, "shutting down"},
		"still writes":     {func(f *Facts) { f.Nodes["a"] = known(primary(1)) }, "still takes writes on timeline 1"},
		"not there yet":    {func(f *Facts) { f.Nodes["a"] = known(replica(1, 5000)) }, "does not stream timeline 2"},
		"not streaming":    {func(f *Facts) { f.node("a", func(n *Node) { n.Receiving = false }) }, "does not stream"},
		"not told":         {func(f *Facts) { f.Status.Value.ObservedAt = begun.Add(-time.Hour) }, "has not said yet"},
		"not SAFE":         {func(f *Facts) { f.Status.Value.Slots[0].Standbys[0].Verdict = plan.Pending }, "PENDING"},
		"flag not set yet": {func(f *Facts) { f.Record.Value.V.Slots[0].Failover = true }, "failover flag"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := underway("another")
			f.led("b", 2)
			f.Nodes["a"] = known(replica(2, 6000, slot("cdc", 4000)))
			f.Status = known(safeStatus("b", 2, "a", "c"))
			f.Status.Value.ObservedAt = begun.Add(time.Second)
			f.verified(Found{Name: "cdc", There: true, Usable: true, Restart: cluster.Some(cluster.LSN(3990)), Confirmed: cluster.Some(cluster.LSN(4000))})
			d, _ := Next(p, m, f)
			wantEnd(t, d, OutcomeDone, true, "taken over")
			if !d.Result.Resumed || !d.Result.OldPrimary.V.Safe || d.Result.Outage.OK {
				t.Errorf("%+v", d.Result)
			}
			c.change(&f)
			d, m = Next(p, m, f)
			want(t, d, "old_primary", Wait, c.says)
			f.Now = f.Now.Add(2 * time.Hour)
			d, _ = Next(p, m, f)
			wantEnd(t, d, OutcomeRunning, false, c.says)
			if d.Result.OldPrimary.V.Safe || len(d.Result.Slots) != 1 {
				t.Errorf("%+v", d.Result)
			}
		})
	}
	// One that is no member any more does not stand in the way of the next switchover.
	p, m, f := underway("another")
	f.led("b", 2)
	f.silent("a", "no route to host")
	f.Keys.Value.Members = f.Keys.Value.Members[1:]
	f.verified(Found{Name: "cdc", There: true, Usable: true, Restart: cluster.Some(cluster.LSN(3990)), Confirmed: cluster.Some(cluster.LSN(4000))})
	d, _ := after(t, p, m, f, 2*time.Hour)
	wantEnd(t, d, OutcomeRunning, true, "not waited for any more")
	// A flag that cannot be set while the consumer is connected is told of, and not waited for.
	p, m, f = underway("another")
	f.led("b", 2)
	f.node("b", func(n *Node) { n.Slots[0].ActivePID = 9 })
	f.Nodes["a"] = known(replica(2, 6000, slot("cdc", 4000)))
	f.Status = known(safeStatus("b", 2, "a", "c"))
	f.Status.Value.ObservedAt = begun.Add(time.Second)
	f.Record.Value.V.Slots[0].Failover = true
	f.verified(Found{Name: "cdc", There: true, Usable: true, Restart: cluster.Some(cluster.LSN(3990)), Confirmed: cluster.Some(cluster.LSN(4000))})
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeDone, true, "taken over")
	if !d.Result.Slots[0].FailoverPending {
		t.Error("it is not told")
	}
}

// What was found on one leader says nothing of the next one.
func TestAnotherLeadsAfterTheSlotsWereSeen(t *testing.T) {
	good := Found{Name: "cdc", There: true, Usable: true, Restart: cluster.Some(cluster.LSN(3990)), Confirmed: cluster.Some(cluster.LSN(4000))}
	for name, c := range map[string]struct {
		leader   string
		timeline cluster.Timeline
	}{"another": {"c", 3}, "the same, promoted again": {"b", 3}} {
		t.Run(name, func(t *testing.T) {
			p, m, f := underway("me")
			_, m = Next(p, m, f)
			f.silent("a", "gone")
			f.Record.Value.V.Last = cluster.Some(m.LastWritable)
			f.led("b", 2)
			f.verified(good)
			d, m := Next(p, m, f)
			want(t, d, "old_primary", Wait, "b leads")
			seen := f.Verified
			f.led(c.leader, c.timeline)
			f.Verified = seen
			d, m = Next(p, m, f)
			if want(t, d, "slots", Verify, "slots on "+c.leader); d.Leader != c.leader {
				t.Error(d.Leader)
			}
			late := f
			late.Now = begun.Add(p.Timeout + time.Second)
			d, _ = Next(p, m, late)
			if wantEnd(t, d, OutcomeRunning, false, "slots on "+c.leader); len(d.Result.Slots) != 0 {
				t.Errorf("%+v", d.Result.Slots)
			}
			f.verified(Found{Name: "cdc", Problem: "it is not there"})
			d, _ = Next(p, m, f)
			if want(t, d, "old_primary", Wait, c.leader+" leads"); d.Leader != c.leader {
				t.Error(d.Leader)
			}
		})
	}
}
