package status_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func inputs() status.Inputs {
	slot := cluster.Slot{Name: "app", Kind: cluster.Logical, Plugin: "pgoutput", Database: `My "DB"`,
		Restart: cluster.Some(cluster.LSN(0x2ff00)), Confirmed: cluster.Some(cluster.LSN(1<<32 | 0x30000)), CatalogXmin: cluster.Some(cluster.XID(800))}
	lost := cluster.Slot{Name: "lost", Kind: cluster.Logical, Plugin: "pgoutput", Database: "shop", Invalidated: "wal_removed"}
	hold := cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical, CatalogXmin: cluster.Some(cluster.XID(799))}
	primary := plan.NodeRead{Node: cluster.Node{SystemID: 7000000000000000001, Timeline: 2}, Slots: []cluster.Slot{lost, slot, hold}}
	standby := plan.NodeRead{Node: cluster.Node{SystemID: 7000000000000000001, Timeline: 2, InRecovery: true, Replay: cluster.Some(cluster.LSN(0x30000))}}
	return status.Inputs{
		Scope: "shop", Owner: "node1", Now: noon.Add(time.Second), Plan: plan.Plan{Primary: "a"},
		Observation: plan.Observation{Begun: noon, Cycle: 7,
			Topology: plan.Fact[cluster.Topology]{At: noon, Value: cluster.Topology{Members: []cluster.Member{{Name: "b"}, {Name: "a"}}}},
			Nodes:    map[string]plan.Fact[plan.NodeRead]{"a": {At: noon, Value: primary}, "b": {At: noon, Value: standby}}},
		Memory: plan.Memory{Epoch: 9, SystemID: 7000000000000000001, Timeline: 2, Generation: 3, Slots: map[string]plan.SlotNote{
			"app": {Database: `My "DB"`, Plugin: "pgoutput"}, "lost": {}, "gone": {AbsentReads: 1},
		}},
		Verdicts: []plan.Verdict{
			{Slot: "lost", Standby: "b", State: plan.Lost, Reason: plan.ReasonWALRemoved, Message: "m", Hint: "h", Since: noon},
			{Slot: "app", Standby: "b", State: plan.Safe, Message: "m", Since: noon, Mirror: cluster.Some(cluster.Position{Restart: 0x2ff00, Confirmed: 0x30000, CatalogXmin: 800}),
				LagBytes: cluster.Some(int64(1 << 32)), ProofAge: cluster.Some(1500 * time.Millisecond)},
		},
		Conditions: []plan.Condition{{Code: "lag", Subject: "app/b", Severity: plan.Info, Since: noon, Message: "m"}, {Code: "feedback_off", Subject: "b", Severity: plan.Warning, Since: noon}},
	}
}

// The document is a contract: this is its text.
func TestDocument(t *testing.T) {
	text, err := json.MarshalIndent(status.Build(inputs()), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"schema_version": 1`, `"scope": "shop"`, `"at": "2026-11-30T12:00:01Z"`,
		"\"leader\": {\n  \"name\": \"node1\",\n  \"epoch\": 9\n }",
		"\"primary\": {\n  \"node\": \"a\",\n  \"timeline\": 2,\n  \"system_identifier\": \"7000000000000000001\"\n }",
		`"name": "app",
   "database": "My \"DB\"",
   "plugin": "pgoutput",
   "restart_lsn": "0/2FF00",
   "confirmed_flush_lsn": "1/30000",
   "catalog_xmin": 800,`,
		`"node": "b",
     "verdict": "SAFE",
     "reason": "",
     "message": "m",
     "hint": "",
     "since": "2026-11-30T12:00:00Z",
     "mirror": {
      "restart_lsn": "0/2FF00",
      "confirmed_flush_lsn": "0/30000",
      "catalog_xmin": 800
     },
     "lag_bytes": 4294967296,
     "proof_age_seconds": 1.5`,
		`"code": "lag",
   "subject": "app/b",
   "severity": "info",
   "since": "2026-11-30T12:00:00Z",
   "message": "m",
   "hint": ""`,
		`"restart_lsn": null`,
		`"mirror": null,
     "lag_bytes": null,
     "proof_age_seconds": null`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document lacks %s\n%s", want, text)
		}
	}
}

func TestDocumentIsInOrderWhateverComesFirst(t *testing.T) {
	in := inputs()
	one := status.Build(in)
	in.Verdicts[0], in.Verdicts[1] = in.Verdicts[1], in.Verdicts[0]
	in.Conditions[0], in.Conditions[1] = in.Conditions[1], in.Conditions[0]
	two := status.Build(in)
	if d := cmp.Diff(one, two); d != "" {
		t.Error(d)
	}
	if len(one.Slots) != 2 || one.Slots[0].Name != "app" || one.Slots[1].Name != "lost" {
		t.Errorf("slots %+v: a slot that is gone is no row", one.Slots)
	}
	if one.Hold == nil || one.Hold.CatalogXmin.V != 799 || one.Hold.Generation != 3 {
		t.Errorf("hold %+v", one.Hold)
	}
	if one.Conditions[0].Code != "feedback_off" || !one.Complete {
		t.Errorf("conditions %+v, complete %t", one.Conditions, one.Complete)
	}
}

func TestWithoutAPrimary(t *testing.T) {
	in := inputs()
	in.Plan.Primary = ""
	in.Observation.Nodes["a"] = plan.Fact[plan.NodeRead]{At: noon, Err: "connection refused", Reason: plan.ReasonUnreachable}
	s := status.Build(in)
	if s.Primary != nil || s.Complete || s.Members[0].Role != "unknown" || s.Members[0].Error == "" {
		t.Errorf("%+v", s)
	}
	if len(s.Slots) != 2 {
		t.Errorf("slots %+v: what is remembered is shown", s.Slots)
	}
}

func TestExitCode(t *testing.T) {
	pair := func(states ...plan.State) status.Slot {
		slot := status.Slot{Name: "app"}
		for _, s := range states {
			slot.Standbys = append(slot.Standbys, status.Standby{Verdict: s})
		}
		return slot
	}
	primary := &status.Primary{Node: "a"}
	for _, tc := range []struct {
		name    string
		s       status.Status
		code    int
		allSafe bool
	}{
		{"no slots", status.Status{Primary: primary}, 0, false},
		{"all safe", status.Status{Primary: primary, Slots: []status.Slot{pair(plan.Safe, plan.Safe)}}, 0, true},
		{"pending", status.Status{Primary: primary, Slots: []status.Slot{pair(plan.Safe, plan.Pending)}}, 3, false},
		{"unsafe", status.Status{Primary: primary, Slots: []status.Slot{pair(plan.Unsafe)}}, 3, false},
		{"lost", status.Status{Primary: primary, Slots: []status.Slot{pair(plan.Lost)}}, 3, false},
		{"unknown", status.Status{Primary: primary, Slots: []status.Slot{pair(plan.Safe, plan.Unknown)}}, 4, false},
		{"unknown does not hide what is bad", status.Status{Primary: primary, Slots: []status.Slot{pair(plan.Unknown, plan.Pending)}}, 3, false},
		{"a slot without a standby", status.Status{Primary: primary, Slots: []status.Slot{pair()}}, 3, false},
		{"no primary", status.Status{Slots: []status.Slot{pair(plan.Safe)}}, 4, true},
	} {
		if got := tc.s.ExitCode(); got != tc.code {
			t.Errorf("%s: exit code %d, want %d", tc.name, got, tc.code)
		}
		if got := tc.s.AllSafe(); got != tc.allSafe {
			t.Errorf("%s: all safe %t", tc.name, got)
		}
	}
}

func TestLedgerGivesMemoryAndStatusBack(t *testing.T) {
	in := inputs()
	in.Memory.Slots["app"] = plan.SlotNote{HighestF: 5, Unproven: true, Ancestors: []cluster.Incarnation{{Inode: 3}}, Last: cluster.Some(cluster.Position{Restart: 1, Confirmed: 5, CatalogXmin: 9})}
	in.Memory.Continuous, in.Memory.HoldGen, in.Memory.Reached = 2, 3, 0x30000
	in.Memory.Standbys = map[string]plan.NodeNote{"b": {MinGeneration: 2, GivenUp: true, ReadAt: noon, AwaySince: noon}}
	s := status.Build(in)
	in.Memory.Pairs = map[plan.Pair]plan.PairNote{{Slot: "app", Standby: "b"}: {Way: "file", ProvenAt: noon,
		Verdict: plan.Verdict{Mirror: cluster.Some(cluster.Position{Restart: 1, Confirmed: 4, CatalogXmin: 9})}}}
	whole, err := status.ClusterPart(in.Memory, s)
	if err != nil {
		t.Fatal(err)
	}
	standbys, err := status.StandbysPart(in.Memory, noon)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := status.SlotTexts(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := status.PositionParts(in.Memory, noon, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(parts, rows)
	parts[status.PartCluster], parts[status.PartStandbys] = whole.Text, standbys
	for name, text := range parts {
		if parts[name], err = status.Packed(text); err != nil {
			t.Fatal(err)
		}
	}
	mem, err := status.Recall(parts)
	if err != nil {
		t.Fatal(err)
	}
	if mem.Generation != 3 || mem.Continuous != 2 || mem.HoldGen != 3 || mem.Timeline != 2 || mem.SystemID != in.Memory.SystemID || mem.Reached != 0x30000 {
		t.Errorf("memory %+v", mem)
	}
	if n := mem.Standbys["b"]; n.MinGeneration != 2 || !n.GivenUp || !n.ReadAt.IsZero() || !n.AwaySince.Equal(noon) {
		t.Errorf("b %+v", n)
	}
	if d := cmp.Diff(in.Memory.Slots["app"], mem.Slots["app"]); d != "" {
		t.Error(d)
	}
	elsewhere := maps.Clone(parts)
	other := in.Memory
	other.Timeline++
	if elsewhere[status.PartStandbys], err = status.StandbysPart(other, noon); err != nil {
		t.Fatal(err)
	}
	if mem, err := status.Recall(elsewhere); err != nil || mem.Reached != 0 {
		t.Errorf("of another timeline: %v, %s", err, mem.Reached)
	}
	back, err := status.FromLedger(parts)
	if err != nil {
		t.Fatal(err)
	}
	if back.Source != "ledger" || len(back.Slots) != 2 || back.Worst() != plan.Lost || back.Slots[0].Confirmed.V != 5 {
		t.Errorf("status %+v", back)
	}
	for _, text := range []string{"null", "{}", `{"version": 0}`, "", "gar\x1bbage", `{"version": 1, "slo`, "\x1f\x8b no gzip"} {
		for name := range parts {
			foreign := maps.Clone(parts)
			foreign[name] = []byte(text)
			if _, err := status.Recall(foreign); err == nil || !strings.Contains(err.Error(), "part "+name) || !strings.Contains(err.Error(), "did not write it") {
				t.Errorf("%s is %q: error %v", name, text, err)
			}
			if _, err := status.FromLedger(foreign); err == nil {
				t.Errorf("%s is %q: no error", name, text)
			}
		}
	}
	for name := range parts {
		for _, text := range []string{`{"version": 1}`, `{"version": 1, "at": null, "scope": null, "leader": null, "memory": null, "standbys": null, "slots": null}`,
			`{"version": 1, "at": "2026-11-30T12:00:00Z", "scope": "shop", "leader": {"name": "a", "epoch": 1}, "memory": {}}`} {
			empty := maps.Clone(parts)
			empty[name] = []byte(text)
			for what, err := range map[string]error{"Recall": second(status.Recall(empty)), "FromLedger": second(status.FromLedger(empty))} {
				if err == nil || !strings.Contains(err.Error(), "part "+name+" has no ") || !strings.Contains(err.Error(), "did not write it") {
					t.Errorf("%s is %s: %s gives %v", name, text, what, err)
				}
			}
		}
		if text, ok := status.Emptied(name); ok {
			gone := maps.Clone(parts)
			gone[name] = text
			if _, err := status.FromLedger(gone); err != nil {
				t.Errorf("%s without a slot: %v", name, err)
			}
		}
	}
	for _, name := range []string{status.PartCluster, status.PartStandbys, "slots/59", "unheard-of"} {
		newer := maps.Clone(parts)
		newer[name] = []byte(`{"version": 2, "slots": "in another shape"}`)
		var want *status.NewerError
		if _, err := status.Recall(newer); !errors.As(err, &want) || !strings.Contains(err.Error(), "use a newer slotkeeper") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := status.FromLedger(newer); !errors.As(err, &want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// What somebody has moved must not outlive a promotion, whoever leads then.
func TestLedgerGivesMovedMirrorsBack(t *testing.T) {
	parts, err := status.SlotTexts(status.Status{Slots: []status.Slot{{Name: "app", Standbys: []status.Standby{
		{Node: "b", Verdict: plan.Unsafe, Reason: plan.ReasonMirrorAhead}, {Node: "c", Verdict: plan.Safe}}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := status.Recall(parts)
	if err != nil {
		t.Fatal(err)
	}
	want := map[plan.Pair]plan.PairNote{{Slot: "app", Standby: "b"}: {Moved: true}}
	if d := cmp.Diff(want, mem.Pairs); d != "" {
		t.Error(d)
	}
}
