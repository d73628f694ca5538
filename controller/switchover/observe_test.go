package switchover

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// The walsender that has stood still for longest is named first, as it was last seen.
func TestBlockers(t *testing.T) {
	p, m, f := underway("me")
	sender := func(pid int32, name, slot string, at cluster.LSN) cluster.Walsender {
		return cluster.Walsender{PID: pid, ApplicationName: name, Client: "10.0.0.5 port 4", SlotName: slot, Flush: cluster.Some(at), State: "streaming"}
	}
	see := func(after time.Duration, senders ...cluster.Walsender) {
		old := f.Nodes["a"]
		old.At, f.Now = begun.Add(after), begun.Add(after)
		old.Value.Walsenders = senders
		f.Nodes["a"] = old
		_, m = Next(p, m, f)
	}
	see(time.Second, sender(1, "b", "", 4000), sender(2, "app", "cdc", 4000), sender(3, "c", "", 5000))
	see(2*time.Second, sender(1, "b", "", 4500), sender(2, "app", "cdc", 4000), sender(3, "c", "", 5000))
	f.silent("a", "the database system is shutting down")
	f.Now = begun.Add(12 * time.Second)
	d, m := Next(p, m, f)
	want(t, d, "handover", Note, "")
	if r := d.Record; !r.Last.V.Equal(begun.Add(2*time.Second)) || len(r.Senders) != 1 || r.ID != "me" {
		t.Errorf("%+v", r)
	}
	f.Record.Value.V.Last, f.Record.Value.V.Senders = d.Record.Last, d.Record.Senders
	says := "asked, 10s ago, these had not confirmed everything, and a primary does not stop before they have: walsender 2 (application_name app) from 10.0.0.5 port 4, slot cdc, 1000 bytes behind"
	d, m = Next(p, m, f)
	want(t, d, "handover", Wait, says)
	if strings.Contains(d.Text, "walsender 1") {
		t.Error("one that moves is named: " + d.Text)
	}
	// Once nobody listens there any more it has stopped, and is kept from nothing.
	gone := f
	gone.Nodes = map[string]plan.Fact[Node]{"a": {Err: "connection refused", At: f.Now, Value: Node{Stopped: true}}}
	if d, _ := Next(p, m, gone); strings.Contains(d.Text, "walsender") {
		t.Error("it has stopped: " + d.Text)
	}
	// A run after this one knows it from the record.
	resumed, _ := Next(p, Memory{ID: "next", Begun: begun}, f)
	want(t, resumed, "handover", Wait, says)
	f.Now = begun.Add(2 * time.Hour)
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeRunning, false, "have the consumer of walsender 2 end")
	if w := d.Result.Walsenders; len(w) != 1 || w[0].PID != 2 || w[0].Behind.V != 1000 || !d.Result.AskedLast.V.Equal(begun.Add(2*time.Second)) {
		t.Errorf("%+v", w)
	}
}

// How long there was no primary is only said where somebody has seen both ends.
func TestOutage(t *testing.T) {
	p, m, f := underway("another")
	f.Record.Value.V.Last = cluster.Some(begun.Add(time.Second))
	f.silent("a", "gone")
	f.verified()
	late := f
	late.Nodes = map[string]plan.Fact[Node]{}
	for name, n := range f.Nodes {
		late.Nodes[name] = n
	}
	late.Now = begun.Add(time.Hour - time.Second)
	late.led("b", 2)
	p.Timeout = time.Hour
	_, m2 := Next(p, m, late)
	late.Now = begun.Add(2 * time.Hour)
	if d, _ := Next(p, m2, late); d.Result.Outage.OK {
		t.Errorf("%v, and b may have led for an hour", d.Result.Outage)
	}
	_, m = Next(p, m, f)
	f.Now = begun.Add(5 * time.Second)
	f.led("b", 2)
	_, m = Next(p, m, f)
	f.Now = begun.Add(2 * time.Hour)
	if d, _ := Next(p, m, f); d.Result.Outage.V != 4 {
		t.Errorf("%v", d.Result.Outage)
	}
}
