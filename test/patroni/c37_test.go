//go:build patroni

package patroni

import (
	"context"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// C37: members of odd names, one behind another, one that is never promoted; and
// while Patroni is paused nothing is made and nothing dropped.
func TestC37OddNamesTagsAndAPause(t *testing.T) {
	t.Parallel()
	names := []string{"Node-1.example", "nöde 2", strings.Repeat("n", 70)}
	s := begin(t, nil, func(o *lab.PatroniOptions) {
		o.Names = names
		o.Tags = map[string]map[string]any{
			names[1]: {"nofailover": true},
			names[2]: {"replicatefrom": names[0]},
		}
	})
	s.run()
	s.safe("cdc")
	leader := s.leader()
	doc, ok := s.Status()
	if !ok || doc.Primary.Node != leader.Name() || len(doc.Members) != 3 || !doc.Complete {
		t.Errorf("%+v", doc)
	}

	s.in(func(ctx context.Context) error { return s.p.Pause(ctx, true) })
	s.told(plan.CondPaused, "")
	s.Logical(leader.Node(), "late")
	s.Exec(leader.Node(), "SELECT pg_drop_replication_slot('cdc')")
	s.Cycles(4)
	for _, n := range s.standbys() {
		s.pair("late", n.Name(), plan.Pending, plan.ReasonNew)
		if s.Has(n, "late") || !s.Has(n, "cdc") {
			t.Errorf("%s: late %v, cdc %v", n.Name(), s.Has(n, "late"), s.Has(n, "cdc"))
		}
	}
	s.in(func(ctx context.Context) error { return s.p.Pause(ctx, false) })
	s.safe("late")
	s.until("the mirrors of the dropped slot to go", func() (bool, string) {
		for _, n := range s.standbys() {
			if s.Has(n, "cdc") {
				return false, n.Name() + " has it"
			}
		}
		return true, ""
	})
}
