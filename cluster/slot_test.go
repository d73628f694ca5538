package cluster_test

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func whole() cluster.Slot {
	return cluster.Slot{
		Name: "s", Kind: cluster.Logical,
		Restart: cluster.Some(cluster.LSN(10)), Confirmed: cluster.Some(cluster.LSN(20)),
		CatalogXmin: cluster.Some(cluster.XID(700)),
	}
}

func TestSlotPosition(t *testing.T) {
	if p, ok := whole().Position(); !ok || p != (cluster.Position{Restart: 10, Confirmed: 20, CatalogXmin: 700}) {
		t.Fatalf("a whole slot gave %v, %t", p, ok)
	}
	none := map[string]func(*cluster.Slot){
		"physical":            func(s *cluster.Slot) { s.Kind = cluster.Physical },
		"invalidated":         func(s *cluster.Slot) { s.Invalidated = "wal_removed" },
		"restart NULL":        func(s *cluster.Slot) { s.Restart = cluster.None[cluster.LSN]() },
		"restart zero":        func(s *cluster.Slot) { s.Restart = cluster.Some(cluster.LSN(0)) },
		"confirmed NULL":      func(s *cluster.Slot) { s.Confirmed = cluster.None[cluster.LSN]() },
		"catalog_xmin NULL":   func(s *cluster.Slot) { s.CatalogXmin = cluster.None[cluster.XID]() },
		"catalog_xmin frozen": func(s *cluster.Slot) { s.CatalogXmin = cluster.Some(cluster.XID(2)) },
		"restart beyond":      func(s *cluster.Slot) { s.Restart = cluster.Some(cluster.LSN(21)) },
	}
	for name, spoil := range none {
		s := whole()
		spoil(&s)
		if p, ok := s.Position(); ok {
			t.Errorf("%s: gave %v", name, p)
		}
	}
}

func TestPositionBehind(t *testing.T) {
	q := cluster.Position{Restart: 10, Confirmed: 20, CatalogXmin: 700}
	cases := map[string]struct {
		p      cluster.Position
		behind bool
	}{
		"the same":        {q, false},
		"ahead":           {cluster.Position{Restart: 11, Confirmed: 21, CatalogXmin: 701}, false},
		"restart back":    {cluster.Position{Restart: 9, Confirmed: 21, CatalogXmin: 701}, true},
		"confirmed back":  {cluster.Position{Restart: 11, Confirmed: 19, CatalogXmin: 701}, true},
		"xmin back":       {cluster.Position{Restart: 11, Confirmed: 21, CatalogXmin: 699}, true},
		"beyond 4 GiB":    {cluster.Position{Restart: 1 << 32, Confirmed: 1 << 33, CatalogXmin: 700}, false},
		"xmin wrapped on": {cluster.Position{Restart: 10, Confirmed: 20, CatalogXmin: 700 + 1<<30}, false},
	}
	for name, c := range cases {
		if got := c.p.Behind(q); got != c.behind {
			t.Errorf("%s: Behind = %t", name, got)
		}
	}
}

func TestIncarnationSame(t *testing.T) {
	at := time.Unix(1000, 5000)
	born := func(inode uint64, birth time.Time) cluster.Incarnation {
		return cluster.Incarnation{Inode: inode, Birth: cluster.Some(birth)}
	}
	cases := map[string]struct {
		a, b cluster.Incarnation
		same bool
	}{
		"itself":               {born(7, at), born(7, at), true},
		"same instant, zone":   {born(7, at), born(7, at.UTC()), true},
		"inode reused":         {born(7, at), born(7, at.Add(time.Microsecond)), false},
		"another inode":        {born(7, at), born(8, at), false},
		"no birth time to see": {cluster.Incarnation{Inode: 7}, born(8, at), true},
	}
	for name, c := range cases {
		if c.a.Same(c.b) != c.same || c.b.Same(c.a) != c.same {
			t.Errorf("%s: Same is not %t", name, c.same)
		}
	}
}
