package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestSelection(t *testing.T) {
	slot := func(name, db, plugin string) cluster.Slot {
		return cluster.Slot{Name: name, Database: db, Plugin: plugin, Kind: cluster.Logical}
	}
	p := Policy{Include: []Match{{Name: "*"}}, Exclude: []Match{{Name: "debezium_*", Plugin: "wal2json"}, {Database: "a/b*"}, {}}}
	for _, tc := range []struct {
		slot cluster.Slot
		want bool
	}{
		{slot("app", "shop", "pgoutput"), true},
		{slot("debezium_1", "shop", "wal2json"), false},
		{slot("debezium_1", "shop", "pgoutput"), true},
		{slot("app", "a/b/c", "pgoutput"), false},
		{slot("app", "база", "pgoutput"), true},
		{cluster.Slot{Name: "p", Kind: cluster.Physical}, false},
		{cluster.Slot{Name: "t", Kind: cluster.Logical, Temporary: true}, false},
		{slot(cluster.HoldName, "shop", "pgoutput"), false},
	} {
		if got := p.Selected(tc.slot); got != tc.want {
			t.Errorf("%s in %s with %s: %t", tc.slot.Name, tc.slot.Database, tc.slot.Plugin, got)
		}
	}
	if (Policy{Include: []Match{{}}}).Selected(slot("app", "shop", "pgoutput")) {
		t.Error("an empty match selects")
	}
	if (Policy{Include: []Match{{Name: "["}}}).Selected(slot("[", "shop", "pgoutput")) {
		t.Error("a malformed pattern selects")
	}
}
