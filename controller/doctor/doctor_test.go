package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// healthy is a primary a and a standby b of one slot, with a controller.
func healthy() Observation {
	return Observation{
		Policy:  plan.Policy{Scope: "shop", Include: []plan.Match{{Name: "*"}}},
		Members: []Member{member("a", false), member("b", true)},
		Etcd:    Etcd{Leader: "node1"},
	}
}

func member(name string, standby bool) Member {
	i := cluster.Inspection{
		ServerVersion: 150018, InRecovery: standby, Database: "postgres", Role: "slotkeeper", Script: "1.0", Available: "1.0",
		Settings: map[string]string{
			"wal_level": "logical", "max_replication_slots": "10", "max_slot_wal_keep_size": "1024",
			"hot_standby_feedback": "on", "primary_slot_name": "", "autovacuum_freeze_max_age": "200000000",
		},
		HoldAge: cluster.Some(int64(20000000)),
	}
	r := plan.NodeRead{Node: cluster.Node{
		SystemID: 7, Timeline: 1, InRecovery: standby, MaxSlots: 10, Library: "1.0", Clock: now,
		Fence: cluster.Some(cluster.Fence{Scope: "shop"}), Heartbeat: cluster.Some(now.Add(-3 * time.Second)),
	}}
	cdc := cluster.Slot{Name: "cdc", Kind: cluster.Logical, Marker: &cluster.Marker{Kind: cluster.MarkOriginal, Scope: "shop"}}
	hold := cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical, CatalogXmin: cluster.Some(cluster.XID(700)), Saved: true,
		Marker: &cluster.Marker{Kind: cluster.MarkHold, Scope: "shop"}}
	r.Slots = []cluster.Slot{cdc, hold}
	if standby {
		i.Settings["primary_slot_name"] = "stream_b"
		r.Slots[0].Marker.Kind = cluster.MarkMirror
	} else {
		r.Slots = append(r.Slots, cluster.Slot{Name: "stream_b", Kind: cluster.Physical, ActivePID: 5})
	}
	return Member{Name: name, Inspection: plan.Fact[cluster.Inspection]{Value: i, At: now}, Read: plan.Fact[plan.NodeRead]{Value: r, At: now}}
}

// slot is a slot of a member, to be spoiled.
func (m *Member) slot(name string) *cluster.Slot { return named(m.Read.Value.Slots, name) }

func (m *Member) drop(name string) {
	m.Read.Value.Slots = slices.DeleteFunc(m.Read.Value.Slots, func(s cluster.Slot) bool { return s.Name == name })
}

func (m *Member) silent(reason plan.Reason) {
	m.Inspection = plan.Fact[cluster.Inspection]{At: now, Err: "nobody answers", Reason: reason, Hint: "start it"}
	m.Read = plan.Fact[plan.NodeRead]{}
}

func (m *Member) unread(reason plan.Reason) {
	m.Read = plan.Fact[plan.NodeRead]{At: now, Err: "it cannot be read", Reason: reason, Hint: "mend it"}
}

func TestEachCheck(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o *Observation, a, b *Member)
		want  []string // "severity code subject"
		says  string   // in the message or the hint of the first
		sql   string   // among all SQL
	}{
		"nothing": {func(*Observation, *Member, *Member) {}, nil, "", ""},

		"etcd is silent": {func(o *Observation, _, _ *Member) { o.Etcd = Etcd{Err: "no answer"} },
			[]string{"critical etcd_unreachable etcd"}, "no answer", ""},
		"no controller yet": {func(o *Observation, a, b *Member) {
			o.Etcd = Etcd{Stopped: true}
			a.Read.Value.Node.Fence, b.Read.Value.Node.Fence = cluster.None[cluster.Fence](), cluster.None[cluster.Fence]()
		}, []string{"info controller_absent controller"}, "no daemon runs", ""},
		"no controller any more": {func(o *Observation, a, _ *Member) {
			o.Etcd.Leader = ""
			a.Read.Value.Node.Heartbeat = cluster.Some(now.Add(-time.Hour))
		}, []string{"warning controller_absent controller"}, "3s ago", ""},

		"a standby is silent": {func(_ *Observation, _, b *Member) { b.silent(plan.ReasonUnreachable) }, []string{"critical unreachable b"}, "start it", ""},
		"a pooler answers":    {func(_ *Observation, _, b *Member) { b.silent(plan.ReasonWrongEndpoint) }, []string{"critical wrong_endpoint b"}, "", ""},
		"a read fails":        {func(_ *Observation, _, b *Member) { b.unread(plan.ReasonExtensionUnavailable) }, []string{"critical extension_unavailable b"}, "mend it", ""},
		"the primary is silent": {func(_ *Observation, a, _ *Member) { a.silent(plan.ReasonUnreachable) },
			[]string{"critical no_leader primary", "critical unreachable a"}, "that answer (1) none", ""},
		"nobody answers": {func(_ *Observation, a, b *Member) { a.silent(plan.ReasonUnreachable); b.silent(plan.ReasonUnreachable) },
			[]string{"critical unreachable a", "critical unreachable b"}, "", ""},
		"two are writable": {func(_ *Observation, _, b *Member) { b.Inspection.Value.InRecovery = false },
			[]string{"critical split_brain a, b"}, "a, b", ""},
		"another system": {func(_ *Observation, _, b *Member) { b.Read.Value.Node.SystemID = 8 },
			[]string{"critical wrong_endpoint b"}, "b is of system 8, a of system 7", ""},

		"no files": {func(_ *Observation, _, b *Member) {
			b.Inspection.Value.Available = ""
			b.unread(plan.ReasonExtensionUnavailable)
		}, []string{"critical extension_unavailable b"}, "are not installed on b", ""},
		"no extension": {func(_ *Observation, a, _ *Member) {
			a.Inspection.Value.Script, a.Inspection.Value.Grants = "", []string{"GRANT all;"}
			a.unread(plan.ReasonExtensionUnavailable)
		}, []string{"critical extension_unavailable a"}, `database "postgres" on a`, "CREATE EXTENSION slotkeeper;"},
		"an update waits": {func(_ *Observation, a, _ *Member) { a.Inspection.Value.Available = "1.1" },
			[]string{"warning extension_unavailable a"}, "version 1.1 is installed", "ALTER EXTENSION slotkeeper UPDATE;"},
		"libraries differ": {func(_ *Observation, _, b *Member) { b.Read.Value.Node.Library = "1.0.1" },
			[]string{"warning versions_differ b"}, "1.0.1 on b", ""},
		"a privilege is lacking": {func(_ *Observation, a, _ *Member) {
			a.Inspection.Value.Lacks, a.Inspection.Value.Grants = []string{"the REPLICATION attribute"}, []string{"ALTER ROLE slotkeeper LOGIN REPLICATION;"}
			a.unread(plan.ReasonNoPrivilege)
		}, []string{"critical no_privilege a"}, "the REPLICATION attribute", "ALTER ROLE slotkeeper LOGIN REPLICATION;"},

		"wal_level of the primary": {func(_ *Observation, a, _ *Member) { a.Inspection.Value.Settings["wal_level"] = "replica" },
			[]string{"critical wal_level a"}, "replica", "ALTER SYSTEM SET wal_level = 'logical'; -- and restart"},
		"wal_level of the standby": {func(_ *Observation, _, b *Member) { b.Inspection.Value.Settings["wal_level"] = "replica" },
			[]string{"critical wal_level b"}, "", ""},
		"no room for a mirror": {func(_ *Observation, _, b *Member) { b.Read.Value.Node.MaxSlots = 2 },
			[]string{"critical no_free_slot b"}, "2 on b, 3 slots are needed", "ALTER SYSTEM SET max_replication_slots = 3; -- and restart"},
		"room taken by others": {func(_ *Observation, _, b *Member) {
			b.Read.Value.Node.MaxSlots = 3
			b.Read.Value.Slots = append(b.Read.Value.Slots, cluster.Slot{Name: "x", Kind: cluster.Physical})
		}, []string{"critical no_free_slot b"}, "1 others", ""},
		"no room for the hold": {func(_ *Observation, a, _ *Member) {
			a.Read.Value.Node.MaxSlots = 2
		}, []string{"critical no_free_slot a"}, "1 of slotkeeper's own", ""},
		"just room": {func(_ *Observation, a, b *Member) { a.Read.Value.Node.MaxSlots, b.Read.Value.Node.MaxSlots = 3, 3 }, nil, "", ""},

		"unbounded WAL": {func(_ *Observation, a, b *Member) {
			a.Inspection.Value.Settings["max_slot_wal_keep_size"] = "-1"
			b.Inspection.Value.Settings["max_slot_wal_keep_size"] = "-1"
		}, []string{"warning wal_unbounded b"}, "until the disk is full", ""},
		"a server without that setting": {func(_ *Observation, _, b *Member) { delete(b.Inspection.Value.Settings, "max_slot_wal_keep_size") }, nil, "", ""},
		"feedback off": {func(_ *Observation, _, b *Member) { b.Inspection.Value.Settings["hot_standby_feedback"] = "off" },
			[]string{"warning feedback_off b"}, "", "ALTER SYSTEM SET hot_standby_feedback = on;"},

		"no primary_slot_name": {func(_ *Observation, _, b *Member) { b.Inspection.Value.Settings["primary_slot_name"] = "" },
			[]string{"warning physical_slot_missing b"}, "has no primary_slot_name", ""},
		"its slot is not there":   {func(_ *Observation, a, _ *Member) { a.drop("stream_b") }, []string{"warning physical_slot_missing b"}, "stream_b", ""},
		"its slot is inactive":    {func(_ *Observation, a, _ *Member) { a.slot("stream_b").ActivePID = 0 }, []string{"warning physical_slot_inactive b"}, "nobody streams", ""},
		"its slot is invalidated": {func(_ *Observation, a, _ *Member) { a.slot("stream_b").Invalidated = "wal_removed" }, []string{"warning physical_slot_invalidated b"}, "wal_removed", ""},

		"no hold":        {func(_ *Observation, a, _ *Member) { a.drop(cluster.HoldName) }, []string{"critical hold_missing a"}, "not protected", ""},
		"no hold yet":    {func(_ *Observation, a, _ *Member) { a.drop(cluster.HoldName); a.Read.Value.Node.Fence.OK = false }, []string{"info hold_missing a"}, "yet", ""},
		"a foreign hold": {func(_ *Observation, a, _ *Member) { a.slot(cluster.HoldName).Marker = nil }, []string{"critical not_ours a"}, "scope shop", ""},
		"a used hold": {func(_ *Observation, a, _ *Member) { a.slot(cluster.HoldName).Restart = cluster.Some(cluster.LSN(1)) },
			[]string{"critical hold_missing a"}, "protects nothing", ""},
		"an unsaved hold": {func(_ *Observation, a, _ *Member) { a.slot(cluster.HoldName).Saved = false }, []string{"warning hold_not_saved a"}, "", ""},
		"nothing to hold": {func(o *Observation, a, _ *Member) { o.Policy.Include = nil; a.drop(cluster.HoldName) }, nil, "", ""},
		"an old hold": {func(_ *Observation, _, b *Member) { b.Inspection.Value.HoldAge = cluster.Some(int64(20000001)) },
			[]string{"warning hold_age b"}, "20000001 transactions", ""},

		"a copy of the server's own": {func(_ *Observation, a, b *Member) {
			a.slot("cdc").Failover = true
			b.Read.Value.Node.MaxSlots, b.Read.Value.Node.SyncSlots = 3, true
			*b.slot("cdc") = cluster.Slot{Name: "cdc", Kind: cluster.Logical, Failover: true, Synced: true}
		}, nil, "", ""},
		"an unmarked slot": {func(_ *Observation, _, b *Member) { b.slot("cdc").Marker = nil }, []string{"critical not_ours b/cdc"}, "pg_drop_replication_slot('cdc'); on b", ""},
		"a marker of others": {func(_ *Observation, _, b *Member) { b.slot(cluster.HoldName).Marker.Scope = "other" },
			[]string{"critical not_ours b/slotkeeper_hold"}, "", ""},
		"a slot of others": {func(_ *Observation, _, b *Member) {
			b.Read.Value.Slots = append(b.Read.Value.Slots, cluster.Slot{Name: "theirs", Kind: cluster.Logical})
		}, nil, "", ""},
		"a plugin is missing": {func(o *Observation, _, _ *Member) {
			o.Verdicts = []plan.Verdict{{Slot: "cdc", Standby: "b", Reason: plan.ReasonPluginMissing, Message: "no wal2json"}, {Slot: "x", Standby: "b", Reason: plan.ReasonNew}}
		}, []string{"critical plugin_missing b/cdc"}, "no wal2json", ""},
		"a foreign fence": {func(_ *Observation, _, b *Member) { b.Read.Value.Node.Fence.V.Scope = "other" },
			[]string{"critical foreign_epoch b"}, "scope other", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			c.spoil(&o, &o.Members[0], &o.Members[1])
			found := Diagnose(o)
			var got, sql []string
			for _, f := range found {
				got = append(got, string(f.Severity)+" "+f.Code+" "+f.Subject)
				sql = append(sql, f.SQL...)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Fatal(d)
			}
			if c.says != "" && !strings.Contains(found[0].Message+" "+found[0].Hint, c.says) {
				t.Errorf("no %q in %q, %q", c.says, found[0].Message, found[0].Hint)
			}
			if c.sql != "" && !slices.Contains(sql, c.sql) {
				t.Errorf("the SQL is %q, want %q among it", sql, c.sql)
			}
		})
	}
}

// The order of the members does not matter, and each finding says what to do.
func TestDiagnoseIsStable(t *testing.T) {
	o := healthy()
	o.Members[1].Inspection.Value.Settings["hot_standby_feedback"] = "off"
	o.Members[1].slot("cdc").Marker = nil
	o.Etcd.Leader = ""
	found := Diagnose(o)
	slices.Reverse(o.Members)
	if d := cmp.Diff(found, Diagnose(o)); d != "" {
		t.Error(d)
	}
	if len(found) != 3 || found[0].Severity != plan.Critical {
		t.Errorf("the worst does not come first: %+v", found)
	}
	for _, f := range found {
		if f.Message == "" || f.Hint == "" {
			t.Errorf("%s says %q, %q", f.Code, f.Message, f.Hint)
		}
	}
}

func TestHowItEnds(t *testing.T) {
	info, warning := Finding{Code: "x", Severity: plan.Info}, Finding{Code: "x", Severity: plan.Warning}
	silent := Finding{Code: string(plan.ReasonUnreachable), Severity: plan.Critical}
	for name, c := range map[string]struct {
		found              []Finding
		sound, unreachable bool
	}{
		"nothing":  {nil, true, false},
		"informed": {[]Finding{info}, true, false},
		"warned":   {[]Finding{info, warning}, false, false},
		"silent":   {[]Finding{warning, silent}, false, true},
	} {
		if Sound(c.found) != c.sound || Unreachable(c.found) != c.unreachable {
			t.Errorf("%s: sound %t, unreachable %t", name, Sound(c.found), Unreachable(c.found))
		}
	}
}
