package switchover

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

var begun = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func known[T any](v T) plan.Fact[T] { return plan.Fact[T]{Value: v, At: begun} }

func position(at cluster.LSN) (cluster.Opt[cluster.LSN], cluster.Opt[cluster.LSN], cluster.Opt[cluster.XID]) {
	return cluster.Some(at - 10), cluster.Some(at), cluster.Some(cluster.XID(700))
}

func slot(name string, at cluster.LSN) cluster.Slot {
	s := cluster.Slot{Name: name, Kind: cluster.Logical, Plugin: "pgoutput", Database: "app"}
	s.Restart, s.Confirmed, s.CatalogXmin = position(at)
	return s
}

func primary(timeline cluster.Timeline, slots ...cluster.Slot) Node {
	return Node{NodeRead: plan.NodeRead{
		Node:  cluster.Node{SystemID: 7, Timeline: timeline, Flush: cluster.Some(cluster.LSN(5000)), Insert: cluster.Some(cluster.LSN(5000))},
		Slots: slots,
	}}
}

func replica(timeline cluster.Timeline, has cluster.LSN, slots ...cluster.Slot) Node {
	return Node{Receiving: true, NodeRead: plan.NodeRead{
		Node:  cluster.Node{SystemID: 7, Timeline: timeline, InRecovery: true, Receive: cluster.Some(has), Replay: cluster.Some(has)},
		Slots: slots,
	}}
}

// scene is a cluster that nothing speaks against: a leads, b and c stand by, and b
// is the most advanced.
func scene() (Policy, Memory, Facts) {
	f := Facts{
		Now: begun,
		Keys: known(Keys{
			Leader: cluster.Some("a"), Modified: 40, Retry: 10 * time.Second,
			Members: []Member{
				{Name: "a", Priority: 1, State: "running"},
				{Name: "b", Priority: 1, State: "streaming", Running: true},
				{Name: "c", Priority: 1, State: "streaming", Running: true},
			},
		}),
		Nodes: map[string]plan.Fact[Node]{
			"a": known(primary(1, slot("cdc", 4000))),
			"b": known(replica(1, 5000, slot("cdc", 4000))),
			"c": known(replica(1, 4900, slot("cdc", 4000))),
		},
		Status: known(safeStatus("a", 1, "b", "c")),
		Record: known(cluster.None[Record]()),
	}
	rules := plan.Policy{Include: []plan.Match{{Name: "*"}}, Exclude: []plan.Match{{Name: "not_ours*"}}}
	return Policy{Yes: true, Timeout: time.Hour, Rules: rules}, Memory{ID: "me", Begun: begun}, f
}

// safeStatus shows slot cdc SAFE on some standbys.
func safeStatus(primary string, timeline cluster.Timeline, standbys ...string) status.Status {
	row := status.Slot{Name: "cdc", Confirmed: cluster.Some(cluster.LSN(4000))}
	for _, name := range standbys {
		row.Standbys = append(row.Standbys, status.Standby{Node: name, Verdict: plan.Safe})
	}
	return status.Status{Primary: &status.Primary{Node: primary, Timeline: timeline, SystemID: 7}, Slots: []status.Slot{row}, ObservedAt: begun}
}

// underway is the scene after the request for b was made by this run, or by another.
func underway(by string) (Policy, Memory, Facts) {
	p, m, f := scene()
	r := Record{
		Version: recordVersion, ID: by, Leader: "a", Candidate: "b", At: begun, SystemID: 7, Timeline: 1, Modified: 40, Asked: true,
		Slots: []Before{{Name: "cdc", Confirmed: cluster.Some(cluster.LSN(4000)), Mirror: cluster.Some(cluster.Position{Restart: 3990, Confirmed: 4000, CatalogXmin: 700})}},
	}
	f.Record = known(cluster.Some(r))
	f.Request.Made = by == m.ID
	return p, m, f
}

// led has a member lead on a timeline, with cdc on it.
func (f *Facts) led(name string, timeline cluster.Timeline) {
	f.Keys.Value.Leader, f.Keys.Value.Modified = cluster.Some(name), 50
	n := primary(timeline, slot("cdc", 4000))
	for t := cluster.Timeline(1); t < timeline; t++ {
		n.Node.History = append(n.Node.History, cluster.Fork{Timeline: t, LSN: 5100})
	}
	f.Nodes[name] = plan.Fact[Node]{Value: n, At: f.Now}
	f.Verified.Value.Leader, f.Verified.Value.Timeline = name, timeline
}

// verified has the slots looked at on whoever leads.
func (f *Facts) verified(found ...Found) {
	leader := f.Keys.Value.Leader.V
	f.Verified = known(Verified{Leader: leader, Timeline: f.Nodes[leader].Value.Node.Timeline, Slots: found})
}

func (f *Facts) silent(name, why string) { f.Nodes[name] = plan.Fact[Node]{Err: why, At: f.Now} }

func (f *Facts) node(name string, change func(*Node)) {
	fact := f.Nodes[name]
	change(&fact.Value)
	f.Nodes[name] = fact
}

// after decides again once some time has passed in which the facts stood.
func after(t *testing.T, p Policy, m Memory, f Facts, passes time.Duration) (Decision, Memory) {
	t.Helper()
	_, m = Next(p, m, f)
	f.Now = f.Now.Add(passes)
	return Next(p, m, f)
}

func want(t *testing.T, d Decision, step string, action Action, says string) {
	t.Helper()
	text := d.Text + " " + d.Result.Message + " " + d.Result.Hint
	if d.Step != step || d.Action != action || !strings.Contains(text, says) {
		t.Errorf("want %s at %s saying %q: %s at %s: %s", action, step, says, d.Action, d.Step, text)
	}
}

func wantEnd(t *testing.T, d Decision, o Outcome, drop bool, says string) {
	t.Helper()
	text := d.Result.Message + " " + d.Result.Hint
	if d.Action != End || d.Result.Outcome != o || d.Drop != drop || !strings.Contains(text, says) {
		t.Errorf("want the end %s (drop %v) saying %q: %s at %s, %s (drop %v): %s%s", o, drop, says, d.Action, d.Step, d.Result.Outcome, d.Drop, text, d.Text)
	}
}
