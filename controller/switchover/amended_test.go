package switchover

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func before(name string, at cluster.LSN) Before {
	return Before{Name: name, Database: "app", Plugin: "pgoutput", Confirmed: cluster.Some(at)}
}

// slotsOf gives where the slots of a record stand.
func slotsOf(r Record) map[string]cluster.LSN {
	all := map[string]cluster.LSN{}
	for _, b := range r.Slots {
		all[b.Name] = b.Confirmed.Or(0)
	}
	return all
}

func wantSlots(t *testing.T, what string, r Record, want map[string]cluster.LSN) {
	t.Helper()
	got := slotsOf(r)
	if len(got) != len(want) || len(got) != len(r.Slots) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
	for name, at := range want {
		if got[name] != at {
			t.Errorf("%s: %s at %s, want %s", what, name, got[name], at)
		}
	}
}

// What is asked for names the slots that have a verdict and those that will get one.
func TestRecordNamesTheSlots(t *testing.T) {
	p, m, f := scene()
	f.Status.Value.Slots[0].Name = "not_ours_but_judged"
	m.Before = map[string]Before{"cdc": before("cdc", 4000), "not_ours": before("not_ours", 4100), "not_ours_but_judged": before("not_ours_but_judged", 4200)}
	wantSlots(t, "asked", m.record(p, f), map[string]cluster.LSN{"cdc": 4000, "not_ours_but_judged": 4200})
}

// A slot that was made after that is looked for too, where the record has room for
// all and it has a position; those that are there are taken as they were seen last.
func TestAmendedNamesTheSlotsMadeSince(t *testing.T) {
	p, m, _ := scene()
	unfinished := before("unfinished", 0)
	unfinished.Confirmed = cluster.None[cluster.LSN]()
	m.LastWritable = begun
	m.Before = map[string]Before{"cdc": before("cdc", 4500), "new": before("new", 4600), "not_ours": before("not_ours", 4700), "unfinished": unfinished}
	r := Record{ID: "me", Slots: []Before{before("cdc", 4000)}}
	m.seen = cluster.Some(r)
	wantSlots(t, "amended", m.amended(p), map[string]cluster.LSN{"cdc": 4500, "new": 4600})
	if r.Slots[0].Confirmed.V != 4000 {
		t.Error("the record that was seen has changed")
	}
	m.seen.V.More = 3
	wantSlots(t, "amended, where not all found room", m.amended(p), map[string]cluster.LSN{"cdc": 4500})
}

// What a run has seen itself it does not take from the record.
func TestRecall(t *testing.T) {
	record := Record{Last: cluster.Some(begun.Add(time.Second))}
	m := Memory{}.recall(record)
	if !m.LastWritable.Equal(begun.Add(time.Second)) || !m.SendersAt.Equal(begun.Add(time.Second)) {
		t.Errorf("nothing seen: %s, %s", m.LastWritable, m.SendersAt)
	}
	seen := begun.Add(time.Minute)
	m = Memory{LastWritable: seen, SendersAt: seen}.recall(record)
	if !m.LastWritable.Equal(seen) || !m.SendersAt.Equal(seen) {
		t.Errorf("seen later: %s, %s", m.LastWritable, m.SendersAt)
	}
	if m = (Memory{}).recall(Record{At: begun}); !m.LastWritable.IsZero() || !m.SendersAt.Equal(begun) {
		t.Errorf("not seen by anybody: %s, %s", m.LastWritable, m.SendersAt)
	}
}

// When it stopped is written once, by the run that asked and that saw it take writes.
func TestStopped(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(m *Memory, f *Facts)
		want  bool
	}{
		"silent":                        {func(*Memory, *Facts) {}, true},
		"a standby by now":              {func(_ *Memory, f *Facts) { f.Nodes["a"] = known(replica(1, 5000)) }, true},
		"it still takes writes":         {func(_ *Memory, f *Facts) { f.Nodes["a"] = known(primary(1)) }, false},
		"never seen to take writes":     {func(m *Memory, _ *Facts) { m.LastWritable = time.Time{} }, false},
		"another run's":                 {func(m *Memory, _ *Facts) { m.ID = "other" }, false},
		"not asked yet":                 {func(_ *Memory, f *Facts) { f.Record.Value.V.Asked = false }, false},
		"written already":               {func(_ *Memory, f *Facts) { f.Record.Value.V.Last = cluster.Some(begun) }, false},
		"there is no record of it":      {func(_ *Memory, f *Facts) { f.Record = known(cluster.None[Record]()) }, false},
		"no record, nor a name to tell": {func(m *Memory, f *Facts) { m.ID, f.Record = "", known(cluster.None[Record]()) }, false},
	} {
		_, m, f := underway("me")
		m.LastWritable = begun
		f.silent("a", "gone")
		c.spoil(&m, &f)
		if got := m.stopped(f); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A consumer is as far as its slot says, where its walsender says less.
func TestASenderIsAsFarAsItsSlot(t *testing.T) {
	n := primary(1, slot("cdc", 4800))
	n.Walsenders = []cluster.Walsender{
		{PID: 1, SlotName: "cdc", Flush: cluster.Some(cluster.LSN(4000))},
		{PID: 2, SlotName: "other", Flush: cluster.Some(cluster.LSN(4100))},
	}
	m := Memory{}.lastOf(n, begun)
	if len(m.Senders) != 2 || m.Senders[0].PID != 2 || m.Senders[0].Behind.V != 900 || m.Senders[1].Behind.V != 200 {
		t.Errorf("%+v", m.Senders)
	}
	n.Walsenders[0].Flush = cluster.Some(cluster.LSN(4900))
	m = Memory{}.lastOf(n, begun)
	if len(m.Senders) != 2 || m.Senders[1].Behind.V != 100 {
		t.Errorf("its own word is the later one: %+v", m.Senders)
	}
}
