package switchover

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Only the run that wrote the record asks, and once.
func TestAsksOnce(t *testing.T) {
	p, m, f := underway("me")
	f.Request.Made = false
	d, m := Next(p, m, f)
	want(t, d, "ask", Ask, "asking Patroni on a to hand over to b")
	f.Request.Made = true
	d, m = Next(p, m, f)
	want(t, d, "handover", Wait, "has not answered")
	// The record is gone, taken by another run that watched: no new one is begun.
	f.Record = known(cluster.None[Record]())
	d, m = Next(p, m, f)
	want(t, d, "handover", Wait, "")
	f.Record.Err = "etcd does not answer"
	d, _ = Next(p, m, f)
	want(t, d, "handover", Wait, "")
	// Nor by a run that only watched.
	p, m, f = underway("another")
	d, m = Next(p, m, f)
	want(t, d, "handover", Wait, "nothing of the request")
	f.Record = known(cluster.None[Record]())
	d, m = Next(p, m, f)
	want(t, d, "handover", Wait, "")
	other := Record{Version: 1, ID: "third", Leader: "a", Candidate: "c", Timeline: 1}
	f.Record = known(cluster.Some(other))
	if d, _ = Next(p, m, f); d.ID != "another" {
		t.Errorf("goes on with %q", d.ID)
	}
}

func TestAnotherIsUnderWay(t *testing.T) {
	p, m, f := underway("another")
	p.To = "c"
	d, _ := Next(p, m, f)
	wantEnd(t, d, OutcomeRefused, false, "a switchover from a to b")
}

// Patroni's answer alone ends a run only where it says that nothing will come of it.
func TestPatroniAnswers(t *testing.T) {
	cases := map[string]struct {
		request Request
		outcome Outcome // "" where it goes on
		code    int
		says    string
	}{
		"412":     {Request{Status: 412, Text: "no good candidates have been found"}, OutcomeRefusedByPatroni, 3, "HTTP status 412: no good candidates"},
		"401":     {Request{Status: 401, Text: "no auth", Hint: "set username"}, OutcomePatroniError, 1, "HTTP status 401: no auth; nothing is changed set username"},
		"403":     {Request{Status: 403, Text: "no"}, OutcomePatroniError, 1, "403"},
		"unsent":  {Request{Unsent: true, Text: "connection refused"}, OutcomeUnreachable, 4, "connection refused; nothing is changed"},
		"200":     {Request{Status: 200, Text: `Successfully switched over to "b"`}, "", 0, ""},
		"503":     {Request{Status: 503, Text: "Switchover status unknown"}, "", 0, "503: Switchover status unknown"},
		"no time": {Request{Text: "context deadline exceeded"}, "", 0, "did not answer: context deadline"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := underway("me")
			c.request.Made, c.request.Answered = true, true
			f.Request = c.request
			d, _ := Next(p, m, f)
			if c.outcome == "" {
				want(t, d, "handover", Wait, c.says)
				return
			}
			wantEnd(t, d, c.outcome, true, c.says)
			if d.Result.Outcome.ExitCode() != c.code {
				t.Errorf("exit code %d", d.Result.Outcome.ExitCode())
			}
		})
	}
}

// Leader and timeline say whether it has happened, and nothing else does.
func TestHandover(t *testing.T) {
	cases := map[string]struct {
		change func(f *Facts)
		says   string
	}{
		"taken up":       {func(f *Facts) { f.Keys.Value.Failover = cluster.Some(Wanted{"a", "b"}) }, "about to stop"},
		"stopping":       {func(f *Facts) { f.silent("a", "the database system is shutting down") }, "shutting down"},
		"nobody leads":   {func(f *Facts) { f.Keys.Value.Leader = cluster.None[string]() }, "nobody leads"},
		"key alone":      {func(f *Facts) { f.Keys.Value.Leader = cluster.Some("b") }, "b has the leader key, and is not promoted yet"},
		"old timeline":   {func(f *Facts) { f.led("b", 1) }, "on timeline 1"},
		"key unreadable": {func(f *Facts) { f.Keys.Err = "etcd does not answer" }, "etcd does not answer"},
		"demoted again":  {func(f *Facts) { f.Nodes["a"] = known(replica(1, 5000)) }, "a has the leader key, and is not promoted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := underway("me")
			f.Request = Request{Made: true, Answered: true, Status: 200, Text: `Successfully switched over to "b"`}
			c.change(&f)
			d, m := after(t, p, m, f, time.Hour-time.Second)
			want(t, d, "handover", Wait, c.says)
			f.Now = begun.Add(time.Hour + time.Second)
			d, _ = Next(p, m, f)
			wantEnd(t, d, OutcomeRunning, false, "still running")
			if d.Result.Outcome.ExitCode() != 6 || !strings.Contains(d.Result.Hint, "the same command again") {
				t.Errorf("%+v", d.Result)
			}
		})
	}
	p, m, f := underway("me")
	f.led("b", 2)
	d, _ := Next(p, m, f)
	want(t, d, "slots", Verify, "slots on b")
	if d.Leader != "b" {
		t.Error(d.Leader)
	}
}

// A record that outlived its cluster is not waited for.
func TestAnotherCluster(t *testing.T) {
	p, m, f := underway("killed")
	f.node("a", func(n *Node) { n.Node.SystemID, n.Node.Timeline = 8, 5 })
	d, _ := Next(p, m, f)
	wantEnd(t, d, OutcomeNotDone, true, "another cluster by now")
}

// A request is only known not to have happened when Patroni has dropped it, or has
// not taken it up for as long as it could.
func TestNotDone(t *testing.T) {
	p, m, f := underway("me")
	f.Request = Request{Made: true, Answered: true, Status: 503, Text: "Switchover failed"}
	f.Keys.Value.Modified = 44
	d, _ := after(t, p, m, f, settle-time.Second)
	want(t, d, "handover", Wait, "a leads on")
	d, _ = after(t, p, m, f, settle)
	wantEnd(t, d, OutcomeNotDone, true, "dropped the request, and a leads on; it answered 503: Switchover failed")
	if d.Result.Outcome.ExitCode() != 1 {
		t.Error(d.Result.Outcome.ExitCode())
	}

	f.Keys.Value.Modified = 40
	d, _ = after(t, p, m, f, quiet(f.Keys.Value)-time.Second)
	want(t, d, "handover", Wait, "nothing of the request")
	d, _ = after(t, p, m, f, quiet(f.Keys.Value))
	wantEnd(t, d, OutcomeNotDone, true, "did not take the request up")
	f.Request = Request{Made: true}
	d, _ = after(t, p, m, f, time.Minute)
	want(t, d, "handover", Wait, "has not answered")
}

// Another run's request that was never taken up is begun anew; one whose run goes
// on meanwhile is not.
func TestBeginsAnew(t *testing.T) {
	p, m, f := underway("killed")
	d, _ := after(t, p, m, f, quiet(f.Keys.Value)-time.Second)
	want(t, d, "handover", Wait, "nothing of the request")
	d, _ = after(t, p, m, f, quiet(f.Keys.Value))
	want(t, d, "handover", Remove, "beginning anew")
	if d.ID != "killed" {
		t.Errorf("removes %q", d.ID)
	}
	f.Record.Value.V.Asked = false
	_, m = Next(p, m, f)
	f.Now = f.Now.Add(quiet(f.Keys.Value))
	f.Record.Value.V.Asked = true // it was only held up
	d, _ = Next(p, m, f)
	want(t, d, "handover", Wait, "nothing of the request")
}

func refusedByGate(node string, at time.Time) Answer {
	return Answer{Node: node, At: at, Code: "refused", Line: "refuse: cdc slot_missing"}
}

func TestWhoLeadsAfterwards(t *testing.T) {
	verified := func(f *Facts) {
		f.verified(Found{Name: "cdc", There: true, Usable: true, Restart: cluster.Some(cluster.LSN(3990)), Confirmed: cluster.Some(cluster.LSN(4000))})
	}
	back := func(f *Facts, old string, timeline cluster.Timeline) {
		f.Nodes[old] = known(replica(timeline, 6000, slot("cdc", 4000)))
		f.Status = known(safeStatus(f.Keys.Value.Leader.V, timeline, "a", "b", "c"))
		f.Status.Value.ObservedAt = f.Now.Add(time.Second)
	}
	cases := map[string]struct {
		change  func(f *Facts)
		outcome Outcome
		code    int
		says    string
	}{
		"the candidate":        {func(f *Facts) { f.led("b", 2); back(f, "a", 2) }, OutcomeDone, 0, "b has taken over from a"},
		"another":              {func(f *Facts) { f.led("c", 2); back(f, "a", 2) }, OutcomeInstead, 1, "b was not promoted: c leads"},
		"the old one":          {func(f *Facts) { f.led("a", 2) }, OutcomeInstead, 1, "a leads again"},
		"by its gate, another": {func(f *Facts) { f.led("c", 2); back(f, "a", 2); f.Gate = []Answer{refusedByGate("b", begun)} }, OutcomeRefusedByGate, 3, "refused by its own gate, and c leads: refuse: cdc"},
		"by its gate, the old": {func(f *Facts) { f.led("a", 2); f.Gate = []Answer{refusedByGate("b", begun)} }, OutcomeRefusedByGate, 3, "and a leads again"},
		"another's gate":       {func(f *Facts) { f.led("a", 2); f.Gate = []Answer{refusedByGate("c", begun)} }, OutcomeInstead, 1, "a leads again"},
		"a refusal of before": {func(f *Facts) {
			f.led("a", 2)
			f.Gate = []Answer{refusedByGate("b", begun)}
			f.Record.Value.V.Gate = cluster.Some(f.Gate[0])
		}, OutcomeInstead, 1, "a leads again"},
		"the candidate, for once": {func(f *Facts) {
			f.led("c", 3)
			back(f, "a", 3)
			f.Keys.Value.Successors = map[cluster.Timeline]string{1: "b"}
		}, OutcomeInstead, 1, "b had taken over from a, and by now c leads"},
		"a slot is not there": {func(f *Facts) {
			f.led("b", 2)
			back(f, "a", 2)
			f.Verified.Value.Slots[0] = Found{Name: "cdc", Problem: "it is not there"}
		}, OutcomeSlotsLost, 3, "cdc: it is not there"},
		"a slot is behind its mirror": {func(f *Facts) {
			f.led("b", 2)
			back(f, "a", 2)
			f.Verified.Value.Slots[0].Confirmed = cluster.Some(cluster.LSN(3999))
		}, OutcomeSlotsLost, 3, "behind its mirror"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := underway("me")
			f.Request = Request{Made: true, Answered: true, Status: 200, Text: `Switched over to "c" instead of "b"`}
			f.node("c", func(n *Node) { n.Slots = []cluster.Slot{slot("cdc", 3999)} })
			_, m = Next(p, m, f)
			f.Now = f.Now.Add(3 * time.Second)
			verified(&f)
			c.change(&f)
			d, _ := Next(p, m, f)
			wantEnd(t, d, c.outcome, true, c.says)
			r := d.Result
			if r.Outcome.ExitCode() != c.code || !r.TimelineAfter.OK || r.TimelineAfter.V < 2 || r.Fork.V != 5100 || len(r.Slots) != 1 {
				t.Errorf("exit code %d, %+v", r.Outcome.ExitCode(), r)
			}
			if usable := c.outcome != OutcomeSlotsLost; r.Slots[0].Usable != usable {
				t.Errorf("%+v", r.Slots[0])
			}
			if at := r.Slots[0].Mirror; r.Leader == "c" && at.V != 3999 || r.Leader == "b" && at.V != 4000 || r.Leader == "a" && at.OK {
				t.Errorf("the mirror of %s is at %v", r.Leader, at)
			}
			if r.Outage.V != 3 {
				t.Errorf("without a primary for %v", r.Outage)
			}
		})
	}
}
