//go:build patroni

package patroni

import (
	"context"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// C25: with the rule, mirrors outlive a restart of Patroni, three switchovers, a
// pause and the death of the leader, under a live consumer that loses nothing.
func TestC25WithTheRuleMirrorsSurvive(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.run()
	s.safe("cdc")
	s.untold(plan.CondPatroniWillDrop)
	life := s.live()

	standby := s.p.Others(s.leader())[0]
	before := s.Slot(standby.Node(), "cdc").Incarnation
	s.in(standby.Restart)
	s.in(standby.WaitReady)
	s.goesOn(life)
	s.safe("cdc")
	if now := s.Slot(standby.Node(), "cdc").Incarnation; now != before {
		t.Error("the mirror did not outlive the restart of its Patroni")
	}

	for range 3 {
		next := s.p.Others(s.leader())[0]
		s.in(func(ctx context.Context) error { return s.p.Switchover(ctx, next) })
		s.goesOn(life)
		s.safe("cdc")
	}

	s.in(func(ctx context.Context) error { return s.p.Pause(ctx, true) })
	s.told(plan.CondPaused, "")
	s.in(func(ctx context.Context) error { return s.p.Pause(ctx, false) })
	s.untold(plan.CondPaused)
	s.goesOn(life)
	s.safe("cdc")

	var was string
	s.in(func(ctx context.Context) error {
		dead, leader, err := s.p.FailOver(ctx)
		if err == nil {
			was = dead.Name()
			t.Logf("%s was killed, %s leads", was, leader.Name())
		}
		return err
	})
	s.goesOn(life)
	dead := s.p.Member(was)
	s.in(dead.Start)
	s.in(s.p.WaitStreaming)
	s.in(dead.WaitReady)
	s.safe("cdc")
	s.account(life)
	if doc, ok := s.Status(); !ok || doc.Primary == nil || doc.Primary.Node != s.leader().Name() {
		t.Errorf("the primary is not Patroni's leader: %+v", doc.Primary)
	}
}

// C25: without a rule what Patroni would drop is named before it does, a mirror
// that it has dropped is told of and made again, and doctor mends the rule.
// C26: so it is with a rule in the wrong place or of the wrong shape.
func TestC25C26WithoutTheRule(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]any{"ignore_slots": nil})
	s.run()
	for _, subject := range []string{"cdc", "slotkeeper_hold", "slotkeeper_wal"} {
		s.told(plan.CondPatroniWillDrop, subject)
	}
	standby := s.p.Others(s.leader())[0]
	name := standby.Name()
	s.pair("cdc", name, plan.Unsafe, plan.ReasonPatroniWillDrop)
	// Patroni may drop it at any moment: one look, not two.
	incarnation := func() string {
		return s.Text(standby.Node(), "SELECT coalesce(max(incarnation::text), '') FROM slotkeeper.slots() WHERE name = 'cdc'")
	}
	before := ""
	s.until("the mirror to be made", func() (bool, string) {
		before = incarnation()
		return before != "", "it is not there"
	})
	s.in(standby.Restart)
	s.in(standby.WaitReady)
	s.told(plan.CondMirrorVanished, "cdc/"+name)
	s.until("the mirror to be made again", func() (bool, string) {
		now := incarnation()
		return now != "" && now != before, "there is " + now
	})

	for _, wrong := range []map[string]any{
		{"postgresql": map[string]any{"ignore_slots": covering()}},
		{"postgresql": map[string]any{"ignore_slots": nil}, "ignore_slots": []any{map[string]any{"type": "logical", "plugin": "wal2json"}}},
		{"ignore_slots": map[string]any{"type": "logical"}},
		{"ignore_slots": []any{"logical"}},
		{"ignore_slots": nil},
	} {
		s.in(func(ctx context.Context) error { return s.p.PatchConfig(ctx, wrong) })
		s.pair("cdc", s.standbys()[0].Name(), plan.Unsafe, plan.ReasonPatroniWillDrop)
		s.told(plan.CondPatroniWillDrop, "cdc")
	}
	// Nobody is there to agree: it is said and not done.
	r := s.Slotkeeper("doctor", "--fix")
	if r.Code == 0 || !strings.Contains(r.Stdout, "patroni_will_drop") || !strings.Contains(r.Stderr, "--yes") {
		t.Errorf("doctor --fix: %+v", r)
	}
	s.pair("cdc", s.standbys()[0].Name(), plan.Unsafe, plan.ReasonPatroniWillDrop)
	r = s.Slotkeeper("doctor", "--fix", "--yes")
	if r.Code == 1 || r.Code == 2 || !strings.Contains(r.Stderr, "configuration is changed") {
		t.Errorf("doctor --fix --yes: %+v", r)
	}
	s.safe("cdc")
	s.untold(plan.CondPatroniWillDrop)
}
