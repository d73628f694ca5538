package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestExamineHold(t *testing.T) {
	good := func() cluster.Slot {
		return cluster.Slot{Name: cluster.HoldName, Kind: cluster.Physical, CatalogXmin: cluster.Some(cluster.XID(800)), EffectiveCatalogXmin: cluster.Some(cluster.XID(800)),
			Saved: true, Marker: &cluster.Marker{Kind: cluster.MarkHold, Scope: scope, Generation: 4}}
	}
	for _, tc := range []struct {
		name  string
		spoil func(*cluster.Slot)
		want  holdState
	}{
		{"good", func(*cluster.Slot) {}, holdValid},
		{"of another name", func(s *cluster.Slot) { s.Name = "other" }, holdMissing},
		{"no marker", func(s *cluster.Slot) { s.Marker = nil }, holdForeign},
		{"another scope's", func(s *cluster.Slot) { s.Marker.Scope = "other" }, holdForeign},
		{"marked as something else", func(s *cluster.Slot) { s.Marker.Kind = cluster.MarkWAL }, holdForeign},
		{"invalidated", func(s *cluster.Slot) { s.Invalidated = "wal_removed" }, holdGone},
		{"with a restart_lsn", func(s *cluster.Slot) { s.Restart = cluster.Some(cluster.LSN(1)) }, holdGone},
		{"with an xmin", func(s *cluster.Slot) { s.Xmin = cluster.Some(cluster.XID(800)) }, holdGone},
		{"without a catalog_xmin", func(s *cluster.Slot) { s.CatalogXmin = cluster.None[cluster.XID]() }, holdGone},
		{"in somebody's hands", func(s *cluster.Slot) { s.ActivePID = 1 }, holdUnsettled},
		{"not saved", func(s *cluster.Slot) { s.Saved = false }, holdUnsettled},
		{"not in effect", func(s *cluster.Slot) { s.EffectiveCatalogXmin = cluster.None[cluster.XID]() }, holdUnsettled},
		{"in effect from later on", func(s *cluster.Slot) { s.EffectiveCatalogXmin = cluster.Some(cluster.XID(801)) }, holdUnsettled},
	} {
		s := good()
		tc.spoil(&s)
		c := &cycle{p: Policy{Scope: scope}}
		if got := c.examineHold([]cluster.Slot{s}); got.state != tc.want || got.state != holdValid && got.why == "" {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestUsedHoldOfAStandbyIsMadeAnew(t *testing.T) {
	w := settled(t)
	w.servers["b"].slots[cluster.HoldName].Restart = cluster.Some(cluster.LSN(5))
	w.turns(2)
	if h := w.servers["b"].slots[cluster.HoldName]; h == nil || h.Restart.OK {
		t.Fatalf("hold %+v", h)
	}
	w.mustBe(t, "app", "b", Safe, "")
}

func TestUsedHoldOfThePrimaryBeginsANewGeneration(t *testing.T) {
	w := settled(t)
	w.servers["a"].slots[cluster.HoldName].Restart = cluster.Some(cluster.LSN(5))
	w.turns(2)
	if h := w.servers["a"].slots[cluster.HoldName]; h == nil || h.Restart.OK || h.Marker.Generation != 2 {
		t.Fatalf("hold %+v", h)
	}
	w.mustBe(t, "app", "b", Safe, "")
}
