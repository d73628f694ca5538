//go:build patroni

package patroni

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// written is all that the controller writes on a node: the fence with its heartbeat,
// its mirrors and its holds, as they are now.
func (s *scene) written(n *lab.Node) []string {
	s.T.Helper()
	rows := s.Rows(n, `SELECT concat_ws(' ', name, restart_lsn, confirmed_flush_lsn, catalog_xmin, incarnation, marker) FROM slotkeeper.slots()
		WHERE name LIKE 'slotkeeper%' OR (marker).kind = 'mirror' ORDER BY name`)
	return append(rows, fmt.Sprintf("%+v", s.Fence(n)))
}

// etcd is away for longer than Patroni's ttl, and in failsafe mode its leader stays one
// all the same. The controller has no lease then: it writes nothing on any node while
// the slot moves on, says so, and leads again when etcd is back. The mirrors are those
// of before, and the live consumer loses nothing.
func TestFailsafeModeWithoutEtcd(t *testing.T) {
	t.Parallel()
	s, life := consumed(t, map[string]any{"failsafe_mode": true})
	leader, nodes := s.leader(), s.p.Nodes()
	for _, n := range nodes {
		s.key("failsafe", fmt.Sprintf("%q", n.Name()))
	}
	timeline := s.timeline()
	before := map[string]string{}
	for _, n := range s.standbys() {
		before[n.Name()] = s.Slot(n, "cdc").Incarnation
	}

	s.in(s.p.Etcd().StopAll)
	stopped := time.Now()
	s.until("the controller to say that nobody leads", func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		for _, f := range doc.Conditions {
			if f.Code == plan.CondEtcdUnreachable && f.Severity == plan.Critical {
				return doc.Leader.Name == "" && !doc.Complete, fmt.Sprintf("%q leads, complete %v", doc.Leader.Name, doc.Complete)
			}
		}
		return false, fmt.Sprint(doc.Conditions)
	})
	still := map[string][]string{}
	for _, n := range nodes {
		still[n.Name()] = s.written(n)
	}
	confirmed := s.Slot(leader.Node(), "cdc").Confirmed

	const says = "continue to run as a leader because failsafe mode is enabled"
	s.until("the leader to have outlived its ttl twice by failsafe mode", func() (bool, string) {
		return time.Since(stopped) > 2*ttl && strings.Count(leader.LogTail(1<<20), says) > 1, leader.LogTail(3)
	})
	s.goesOn(life)
	if now := s.Slot(leader.Node(), "cdc").Confirmed; now <= confirmed {
		t.Errorf("the slot has not moved meanwhile: %s, and %s before", now, confirmed)
	}
	for _, n := range nodes {
		if now := s.written(n); !slices.Equal(now, still[n.Name()]) {
			t.Errorf("%s was written to without a lease:\n%s\nand before\n%s", n.Name(), strings.Join(now, "\n"), strings.Join(still[n.Name()], "\n"))
		}
	}
	if recovering := s.Text(leader.Node(), "pg_is_in_recovery()"); recovering != "false" {
		t.Errorf("%s is no primary any more", leader.Name())
	}
	if r := s.Slotkeeper("status"); r.Code != 4 || !strings.Contains(r.Stdout+r.Stderr, plan.CondEtcdUnreachable) {
		t.Errorf("status: %+v", r)
	}
	if r := s.Slotkeeper("switchover", "--yes"); r.Code != 4 {
		t.Errorf("switchover: %+v", r)
	}

	s.in(s.p.Etcd().StartAll)
	s.safe("cdc")
	s.untold(plan.CondEtcdUnreachable)
	doc, ok := s.Status()
	if !ok || doc.Leader.Name == "" || doc.Primary.Node != leader.Name() || s.leader() != leader || s.timeline() != timeline {
		t.Errorf("%s led on timeline %s, and now %+v, %+v", leader.Name(), timeline, doc.Leader, doc.Primary)
	}
	for _, n := range s.standbys() {
		if now := s.Slot(n, "cdc").Incarnation; now != before[n.Name()] {
			t.Errorf("the mirror on %s was made anew", n.Name())
		}
		if p, _ := harness.Pair(doc, "cdc", n.Name()); p.Verdict != plan.Safe {
			t.Errorf("%s: %+v", n.Name(), p)
		}
	}
	s.goesOn(life)
	s.account(life)
}

// ttl is Patroni's in the lab.
const ttl = 20 * time.Second

// timeline is the leader's.
func (s *scene) timeline() string {
	s.T.Helper()
	return s.Text(s.leader().Node(), "SELECT timeline_id FROM pg_control_checkpoint()")
}
