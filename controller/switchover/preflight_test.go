package switchover

import (
	"slices"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func TestNothingSpeaksAgainstIt(t *testing.T) {
	p, m, f := scene()
	d, m := Next(p, m, f)
	want(t, d, "record", Write, "")
	if m.Candidate != "b" || d.Record.Candidate != "b" || d.Record.Leader != "a" || d.Record.Timeline != 1 || d.Record.Modified != 40 ||
		len(d.Record.Slots) != 1 || d.Record.Slots[0].Mirror.V.Confirmed != 4000 {
		t.Errorf("%+v", d.Record)
	}
}

// Whatever speaks against it is said before Patroni is asked, with the code that
// tells "refused" from "not known".
func TestPreflight(t *testing.T) {
	verdict := func(f *Facts, name string, state plan.State, reason plan.Reason) {
		for i := range f.Status.Value.Slots[0].Standbys {
			if s := &f.Status.Value.Slots[0].Standbys[i]; s.Node == name {
				s.Verdict, s.Reason = state, reason
			}
		}
	}
	member := func(f *Facts, name string) *Member {
		for i := range f.Keys.Value.Members {
			if m := &f.Keys.Value.Members[i]; m.Name == name {
				return m
			}
		}
		return nil
	}
	cases := map[string]struct {
		spoil   func(p *Policy, f *Facts)
		outcome Outcome
		says    string
	}{
		"standby cluster":     {func(_ *Policy, f *Facts) { f.Keys.Value.StandbyCluster = true }, OutcomeRefused, "standby cluster"},
		"paused":              {func(_ *Policy, f *Facts) { f.Keys.Value.Paused = true }, OutcomeRefused, "patronictl resume"},
		"no leader":           {func(_ *Policy, f *Facts) { f.Keys.Value.Leader = cluster.None[string]() }, OutcomeRefused, "nobody leads"},
		"another request":     {func(_ *Policy, f *Facts) { f.Keys.Value.Failover = cluster.Some(Wanted{"a", "c"}) }, OutcomeRefused, "has a request already"},
		"leader silent":       {func(_ *Policy, f *Facts) { f.silent("a", "connection refused") }, OutcomeUnknown, "connection refused"},
		"leader in recovery":  {func(_ *Policy, f *Facts) { f.Nodes["a"] = known(replica(1, 5000)) }, OutcomeUnknown, "in recovery"},
		"two primaries":       {func(_ *Policy, f *Facts) { f.Nodes["c"] = known(primary(1)) }, OutcomeRefused, "split brain"},
		"split brain told":    {func(_ *Policy, f *Facts) { f.Status.Value.Conditions = []status.Finding{{Code: plan.CondSplitBrain}} }, OutcomeRefused, "split brain"},
		"no keys":             {func(_ *Policy, f *Facts) { f.Keys.Err = "etcd does not answer" }, OutcomeUnknown, "etcd does not answer"},
		"no record to read":   {func(_ *Policy, f *Facts) { f.Record.Err = "etcd does not answer" }, OutcomeUnknown, "under way cannot be read"},
		"no status":           {func(_ *Policy, f *Facts) { f.Status.Err = "connection refused" }, OutcomeUnknown, "connection refused"},
		"old status":          {func(_ *Policy, f *Facts) { f.Doubt = "the last observation is 1m0s old" }, OutcomeUnknown, "1m0s old"},
		"status of another":   {func(_ *Policy, f *Facts) { f.Status.Value.Primary.Node = "c" }, OutcomeUnknown, "daemon's primary is c"},
		"status before":       {func(_ *Policy, f *Facts) { f.Status.Value.Primary.Timeline = 9 }, OutcomeUnknown, "on timeline 9"},
		"status of nobody":    {func(_ *Policy, f *Facts) { f.Status.Value.Primary = nil }, OutcomeUnknown, "sees no primary"},
		"no such member":      {func(p *Policy, _ *Facts) { p.To = "x" }, OutcomeRefused, "the members are a, b, c"},
		"leader named":        {func(p *Policy, _ *Facts) { p.To = "a" }, OutcomeRefused, "leader already"},
		"nofailover":          {func(_ *Policy, f *Facts) { member(f, "b").NoFailover = true }, OutcomeRefused, "nofailover"},
		"priority 0":          {func(_ *Policy, f *Facts) { member(f, "b").Priority = 0 }, OutcomeRefused, "failover_priority is 0"},
		"nosync":              {func(_ *Policy, f *Facts) { f.Keys.Value.Synchronous, member(f, "b").NoSync = true, true }, OutcomeRefused, "nosync"},
		"asynchronous":        {func(_ *Policy, f *Facts) { f.Keys.Value.Synchronous = true }, OutcomeRefused, "asynchronous"},
		"no address":          {func(_ *Policy, f *Facts) { member(f, "b").Unusable = "it says no conn_url" }, OutcomeRefused, "no conn_url"},
		"key of no use":       {func(_ *Policy, f *Facts) { *member(f, "b") = Member{Name: "b", Unusable: "it is null"} }, OutcomeRefused, "it is null"},
		"leader of no name":   {func(_ *Policy, f *Facts) { f.Keys.Value.Leader = cluster.Some(`{"x":1}`) }, OutcomeUnknown, "no such member"},
		"candidate silent":    {func(_ *Policy, f *Facts) { f.silent("b", "time is up") }, OutcomeUnknown, "time is up"},
		"candidate elsewhere": {func(_ *Policy, f *Facts) { f.node("b", func(n *Node) { n.Node.SystemID = 8 }) }, OutcomeRefused, "another system"},
		"not streaming":       {func(_ *Policy, f *Facts) { f.node("b", func(n *Node) { n.Receiving = false }) }, OutcomeRefused, "does not stream"},
		"not running":         {func(_ *Policy, f *Facts) { m := member(f, "b"); m.Running, m.State = false, "starting" }, OutcomeRefused, `Patroni says that it is "starting"`},
		"other timeline":      {func(_ *Policy, f *Facts) { f.node("b", func(n *Node) { n.Node.Timeline = 3 }) }, OutcomeRefused, "timeline 3"},
		"slot unsafe":         {func(_ *Policy, f *Facts) { verdict(f, "b", plan.Unsafe, plan.ReasonProtectionGap) }, OutcomeRefused, "cdc is UNSAFE protection_gap"},
		"slot pending":        {func(_ *Policy, f *Facts) { verdict(f, "b", plan.Pending, plan.ReasonReplayLag) }, OutcomeRefused, "slotkeeper wait"},
		"slot unknown":        {func(_ *Policy, f *Facts) { verdict(f, "b", plan.Unknown, plan.ReasonUnreachable) }, OutcomeUnknown, "UNKNOWN"},
		"slot not judged":     {func(_ *Policy, f *Facts) { f.Status.Value.Slots[0].Standbys = f.Status.Value.Slots[0].Standbys[1:] }, OutcomeUnknown, "nothing is known"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := scene()
			p.To = "b"
			c.spoil(&p, &f)
			d, m := Next(p, m, f)
			if c.outcome == OutcomeUnknown {
				// It may come: that is waited for, a little.
				want(t, d, "preflight", Wait, c.says)
				f.Now = f.Now.Add(uncertain)
				d, _ = Next(p, m, f)
			}
			wantEnd(t, d, c.outcome, false, c.says)
			if code := d.Result.Outcome.ExitCode(); c.outcome == OutcomeUnknown && code != 4 || c.outcome == OutcomeRefused && code != 3 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestWhatWasUnknownComes(t *testing.T) {
	p, m, f := scene()
	f.Doubt = "no observation is recorded"
	d, m := Next(p, m, f)
	want(t, d, "preflight", Wait, "no observation")
	f.Doubt, f.Now = "", f.Now.Add(uncertain-time.Second)
	d, m = Next(p, m, f)
	want(t, d, "record", Write, "")
	// And gone again: the wait begins anew.
	f.Doubt, f.Now = "no observation is recorded", f.Now.Add(uncertain)
	d, _ = Next(p, m, f)
	want(t, d, "preflight", Wait, "no observation")
}

// Without a name the most advanced one that may be promoted is taken, by its
// priority where two are as far.
func TestChoice(t *testing.T) {
	cases := map[string]struct {
		spoil func(f *Facts)
		takes string
	}{
		"most advanced":  {func(*Facts) {}, "b"},
		"it may not":     {func(f *Facts) { f.Keys.Value.Members[1].NoFailover = true }, "c"},
		"not safe there": {func(f *Facts) { f.Status.Value.Slots[0].Standbys[0].Verdict = plan.Unsafe }, "c"},
		"silent":         {func(f *Facts) { f.silent("b", "gone") }, "c"},
		"by priority": {func(f *Facts) {
			f.Nodes["c"] = known(replica(1, 5000, slot("cdc", 4000)))
			f.Keys.Value.Members[2].Priority = 2
		}, "c"},
		"synchronous one": {func(f *Facts) { f.Keys.Value.Synchronous = true; f.Keys.Value.Members[2].Sync = true }, "c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := scene()
			c.spoil(&f)
			d, m := Next(p, m, f)
			if d.Record.Candidate != c.takes || d.Record.Why == "" {
				t.Errorf("takes %q: %+v", d.Record.Candidate, d)
			}
			// It stays with that one, although another is ahead by now.
			f.Nodes["c"] = known(replica(1, 6000, slot("cdc", 4000)))
			if d, _ = Next(p, m, f); d.Record.Candidate != c.takes {
				t.Errorf("changes to %q", d.Record.Candidate)
			}
		})
	}
	p, m, f := scene()
	f.Keys.Value.Members[1].NoFailover, f.Keys.Value.Members[2].Priority = true, 0
	d, _ := Next(p, m, f)
	wantEnd(t, d, OutcomeRefused, false, "b is no candidate: it is tagged nofailover; c is no candidate: its failover_priority is 0")
	f.Keys.Value.Members = f.Keys.Value.Members[:1]
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeRefused, false, "no standby")
}

func TestLeave(t *testing.T) {
	p, m, f := scene()
	p.Yes = false
	d, m := Next(p, m, f)
	want(t, d, "confirm", Confirm, "from a to b")
	f.Agreed = cluster.Some(d.Asks)
	d, m = Next(p, m, f)
	want(t, d, "record", Write, "")
	p.DryRun = true
	d, m = Next(p, m, f)
	wantEnd(t, d, OutcomeReady, false, "would switch over from a to b")
	f.Nodes["b"] = known(replica(1, 5000, slot("cdc", 3000)))
	f.node("a", func(n *Node) { n.Slots = []cluster.Slot{slot("cdc", 3000+catchUpBytes+1)} })
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeReady, false, "the mirror of cdc is 1048577 bytes behind")
	// Where one is under way that is what there is to say.
	p, m, f = underway("another")
	p.DryRun = true
	d, _ = Next(p, m, f)
	wantEnd(t, d, OutcomeRunning, false, "under way")
}

func TestCatchUp(t *testing.T) {
	cases := map[string]struct {
		spoil func(f *Facts)
		says  string
	}{
		"the candidate": {func(f *Facts) {
			f.node("a", func(n *Node) { n.Node.Flush = cluster.Some(cluster.LSN(5001 + catchUpBytes)) })
		}, "b is 1048577 bytes behind a"},
		"a mirror": {func(f *Facts) {
			f.node("a", func(n *Node) { n.Slots = []cluster.Slot{slot("cdc", 4001+catchUpBytes)} })
		}, "the mirror of cdc is 1048577 bytes"},
		"a mirror lacks": {func(f *Facts) { f.node("b", func(n *Node) { n.Slots = nil }) }, "the mirror of cdc is not there"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, m, f := scene()
			p.To = "b"
			c.spoil(&f)
			d, m := Next(p, m, f)
			want(t, d, "catch_up", Wait, c.says)
			f.Now = f.Now.Add(p.Timeout + time.Second)
			d, _ = Next(p, m, f)
			wantEnd(t, d, OutcomeNotCaughtUp, false, "nothing was asked")
			if d.Result.Outcome.ExitCode() != 6 {
				t.Error(d.Result.Outcome.ExitCode())
			}
		})
	}
	// Within the bound there is no waiting: under a live consumer they are never equal.
	p, m, f := scene()
	f.node("a", func(n *Node) { n.Slots = []cluster.Slot{slot("cdc", 4000+catchUpBytes)} })
	d, _ := Next(p, m, f)
	want(t, d, "record", Write, "")
}

// The daemon may not have seen a slot that was made a moment ago.
func TestSlotThatNobodyJudged(t *testing.T) {
	made := func(f *Facts, slots ...cluster.Slot) {
		f.node("a", func(n *Node) { n.Slots = append(n.Slots, slots...) })
	}
	p, m, f := scene()
	temporary, physical := slot("temporary", 4000), slot("physical", 4000)
	temporary.Temporary, physical.Kind = true, cluster.Physical
	made(&f, slot("not_ours_1", 4000), temporary, physical)
	d, _ := Next(p, m, f)
	want(t, d, "record", Write, "")

	made(&f, slot("fresh", 4100))
	d, m = Next(p, m, f)
	want(t, d, "catch_up", Wait, "the daemon does not know of these slots on a yet: fresh")
	late := f
	late.Now = f.Now.Add(p.Timeout + time.Second)
	d, _ = Next(p, m, late)
	wantEnd(t, d, OutcomeUnknown, false, "slots on a yet: fresh nothing was asked of Patroni")

	row := f.Status.Value.Slots[0]
	row.Name = "fresh"
	f.Status.Value.Slots = append(f.Status.Value.Slots, row)
	d, m = Next(p, m, f)
	want(t, d, "catch_up", Wait, "the mirror of fresh is not there")
	f.node("b", func(n *Node) { n.Slots = append(n.Slots, slot("fresh", 4100)) })
	d, _ = Next(p, m, f)
	if want(t, d, "record", Write, ""); len(d.Record.Slots) != 2 || d.Record.Slots[1].Name != "fresh" || d.Record.Slots[1].Mirror.V.Confirmed != 4100 {
		t.Errorf("%+v", d.Record.Slots)
	}
}

// One that is made after that is looked for on the new primary all the same.
func TestSlotMadeMeanwhile(t *testing.T) {
	p, m, f := underway("me")
	f.node("a", func(n *Node) { n.Slots = append(n.Slots, slot("fresh", 4100), slot("not_ours_1", 4100)) })
	_, m = Next(p, m, f)
	f.silent("a", "gone")
	f.led("b", 2)
	d, _ := Next(p, m, f)
	want(t, d, "slots", Verify, "slots on b")
	if names := Expected(d.Record, f.Status.Value); !slices.Equal(names, []string{"cdc", "fresh"}) {
		t.Errorf("%v", names)
	}
}
