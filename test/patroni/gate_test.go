//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// killsVariable says how often the leader is killed where one standby is safe and
// the other is not.
const killsVariable = "SLOTKEEPER_PATRONI_KILLS"

// maxRefusals is promotion.max_refusals where nothing else is said.
const maxRefusals = 3

func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv(killsVariable)
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no number of kills", killsVariable, text)
	}
	return n
}

// gated begins a cluster in which a slot that stands in a mirror's way is left alone
// by Patroni, and a standby that is not sent anything goes on waiting.
func gated(t *testing.T, more ...func(*lab.PatroniOptions)) *scene {
	t.Helper()
	rules := append(covering(), map[string]any{"name": "cdc", "type": "physical"})
	s := begin(t, map[string]any{
		"ignore_slots": rules,
		"postgresql":   map[string]any{"parameters": map[string]any{"wal_receiver_timeout": "0"}},
	}, more...)
	s.run()
	s.safe("cdc")
	return s
}

// obstruct puts a slot of somebody else's in the place of a mirror: the standby is
// not safe until it is cleared.
func (s *scene) obstruct(m *lab.PatroniMember) {
	s.T.Helper()
	s.FreezeDaemon() // it would make the mirror again in between
	s.Exec(m.Node(), "SELECT pg_drop_replication_slot('cdc')")
	s.Exec(m.Node(), "SELECT pg_create_physical_replication_slot('cdc')")
	s.ThawDaemon()
	s.pair("cdc", m.Name(), plan.Unsafe, plan.ReasonNotOurs)
}

func (s *scene) clear(m *lab.PatroniMember) {
	s.T.Helper()
	s.Exec(m.Node(), "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'cdc' AND slot_type = 'physical'")
}

// Of two standbys that have received the same the safe one is promoted, whichever
// takes the leader key first, and what its consumer has not confirmed comes.
func TestGateTheSafeStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	s := gated(t)
	rounds, refused, uneven := kills(t), 0, 0
	for round := range rounds {
		leader := s.leader()
		others := s.p.Others(leader)
		unsafe, safe := others[round%2], others[1-round%2]
		s.write(10*round, 10*round+4, others...)
		s.Get(leader.Node(), "cdc")
		s.safe("cdc")
		s.obstruct(unsafe)
		s.write(10*round+5, 10*round+9, others...)
		f := s.failover()
		want := safe
		if f.received[unsafe.Name()] > f.received[safe.Name()] {
			want = unsafe // what the leader wrote as it died has come to one alone
			uneven++
		}
		refused += f.refusals()
		if f.refusals() > maxRefusals {
			t.Errorf("%d refusals: %+v", f.refusals(), f)
		}
		if f.leader != want {
			t.Fatalf("%s leads, want %s: %+v", f.leader.Name(), want.Name(), f)
		}
		if want == safe {
			got := strings.Join(s.Peek(safe.Node(), "cdc"), "\n")
			for id := 10*round + 5; id < 10*round+10; id++ {
				if !strings.Contains(got, fmt.Sprintf("[integer]:%d", id)) {
					t.Errorf("row %d does not come from %s: %s", id, safe.Name(), got)
				}
			}
			s.Get(safe.Node(), "cdc")
		}
		s.clear(unsafe)
		if want == unsafe {
			s.Logical(unsafe.Node(), "cdc")
		}
		s.back(f)
		s.safe("cdc")
	}
	t.Logf("%d kills, %d times the unsafe standby took the key first and was refused, %d times it alone had the last WAL", rounds, refused, uneven)
}

// D12: the safe standby would not be taken by Patroni. The other one is let through
// at once, and what that costs is said.
func TestD12GateDoesNotWaitForWhatPatroniWillNotTake(t *testing.T) {
	t.Parallel()
	s := gated(t)
	for _, c := range []struct {
		says    string
		prepare func(unsafe, safe *lab.PatroniMember) (undo func())
	}{
		{"less WAL", func(unsafe, safe *lab.PatroniMember) func() {
			leader := s.leader().Node()
			pid, err := strconv.Atoi(s.Text(leader, "SELECT pid FROM pg_stat_replication WHERE application_name = '"+safe.Name()+"'"))
			s.OK(err)
			s.OK(syscall.Kill(pid, syscall.SIGSTOP)) // it dies with its server
			// Patroni has the others follow whoever has the leader key, while the gate
			// there still answers: they would catch up, and then be the better ones.
			s.Exec(leader, "ALTER ROLE replicator NOLOGIN")
			s.write(1, 1000, unsafe)
			return func() { s.Exec(s.leader().Node(), "ALTER ROLE replicator LOGIN") }
		}},
		{"nofailover", func(_, safe *lab.PatroniMember) func() {
			s.OK(safe.Configure(map[string]any{"tags": map[string]any{"nofailover": true}}))
			s.OK(safe.Reload())
			s.key("members/"+safe.Name(), `"nofailover":`)
			return func() {
				s.OK(safe.Configure(nil))
				s.OK(safe.Reload())
			}
		}},
		{"not synchronous", func(unsafe, _ *lab.PatroniMember) func() {
			return func() {
				s.in(func(ctx context.Context) error {
					return s.p.PatchConfig(ctx, map[string]any{"synchronous_mode": nil})
				})
			}
		}},
		{"its Patroni does not answer", func(_, safe *lab.PatroniMember) func() {
			s.OK(safe.Freeze())
			return func() { s.OK(safe.Thaw()) }
		}},
	} {
		others := s.p.Others(s.leader())
		if c.says == "not synchronous" {
			s.in(func(ctx context.Context) error {
				return s.p.PatchConfig(ctx, map[string]any{"synchronous_mode": true})
			})
			s.key("sync", `"sync_standby":"`)
			if sync, err := s.p.Key(s.Ctx, "sync"); err == nil && !strings.Contains(sync, `"sync_standby":"`+others[0].Name()) {
				slices.Reverse(others)
			}
		}
		unsafe, safe := others[0], others[1]
		s.obstruct(unsafe)
		undo := c.prepare(unsafe, safe)
		f := s.failover()
		if f.leader != unsafe || f.refusals() != 0 || len(f.answers) != 1 {
			t.Fatalf("%s: %+v", c.says, f)
		}
		for _, word := range []string{"allow, no_safe_candidate", "cdc not_ours", safe.Name() + ": ", c.says} {
			if !strings.Contains(f.answers[0], word) {
				t.Errorf("%s: the gate says nothing of %q: %s", c.says, word, f.answers[0])
			}
		}
		undo()
		s.clear(unsafe)
		s.Logical(unsafe.Node(), "cdc")
		s.back(f)
		s.safe("cdc")
	}
}

// C33: with no standby safe somebody is promoted at once, with no refusal, and what
// is lost is said before and after. Whatever the configuration is like, the gate is
// no reason that nobody leads.
func TestC33GateSomebodyIsAlwaysPromoted(t *testing.T) {
	t.Parallel()
	s := gated(t)
	none := func() {
		for _, m := range s.p.Others(s.leader()) {
			s.obstruct(m)
		}
		s.until("the condition to name what is lost", func() (bool, string) {
			doc, _ := s.Status()
			for _, f := range doc.Conditions {
				if f.Code == plan.CondNoSafeCandidate {
					return strings.Count(f.Message, "would lose cdc (not_ours)") == 2, f.Message
				}
			}
			return false, "it does not stand"
		})
	}
	over := func(f failover) {
		for _, m := range s.p.Others(f.dead) {
			s.clear(m)
		}
		s.Logical(f.leader.Node(), "cdc")
		s.back(f)
		s.safe("cdc")
	}
	none()
	asked := s.failover()
	if asked.refusals() != 0 || len(asked.answers) != 1 || !strings.Contains(asked.answers[0], "no_safe_candidate") || !strings.Contains(asked.answers[0], "cdc not_ours") {
		t.Errorf("%+v", asked)
	}
	over(asked)

	s.OK(s.p.WriteGateConfig("scope: [\n"))
	none()
	blind := s.failover()
	if blind.refusals() != 0 || len(blind.answers) != 1 || !strings.Contains(blind.answers[0], "nothing was looked at") {
		t.Errorf("%+v", blind)
	}
	over(blind)

	for _, m := range s.p.Members() {
		s.OK(m.Configure(map[string]any{"postgresql": map[string]any{"pre_promote": nil}}))
		s.OK(m.Reload())
	}
	none()
	unasked := s.failover()
	if len(unasked.answers) != 0 {
		t.Errorf("%+v", unasked)
	}
	t.Logf("without a primary: %s with the gate, %s without", asked.took, unasked.took)
}
