//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// versionVariable names the environment variable that says which Patroni is tested.
const versionVariable = "SLOTKEEPER_PATRONI"

// patience bounds every wait. It is no measure of speed: a machine with other
// work takes its time for three Patronis.
const patience = 4 * time.Minute

// covering is the rule that the sample has, and that README tells to write.
func covering() []any {
	return []any{
		map[string]any{"type": "logical"},
		map[string]any{"name": "slotkeeper_hold", "type": "physical"},
		map[string]any{"name": "slotkeeper_wal", "type": "physical"},
	}
}

// sample is the configuration that deploy/ has for that version of Patroni.
func sample(t testing.TB, version string) []byte {
	t.Helper()
	if version == "" {
		version = lab.DefaultPatroni
	}
	major, _, _ := strings.Cut(version, ".")
	text, err := os.ReadFile("../../deploy/patroni/patroni-" + major + ".yml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// scene is one test's cluster: three members, a table t, a slot cdc.
type scene struct {
	*harness.Scene
	p *lab.Patroni
}

// begin starts the cluster from the sample of deploy/, with some dynamic
// configuration over it. Its members ask the gate before they are promoted.
func begin(t *testing.T, config map[string]any, more ...func(*lab.PatroniOptions)) *scene {
	t.Helper()
	return beginFor(t, 4*patience, config, more...)
}

// beginFor is begin for a test that takes longer than others.
func beginFor(t *testing.T, limit time.Duration, config map[string]any, more ...func(*lab.PatroniOptions)) *scene {
	t.Helper()
	options := lab.PatroniOptions{Version: os.Getenv(versionVariable), Config: config, Gate: harness.Binary(t)}
	options.Sample = sample(t, options.Version)
	for _, change := range more {
		change(&options)
	}
	major, err := lab.PatroniMajor(options.Version)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	s := &scene{Scene: harness.Bare(t, ctx, major, nil)}
	s.p, err = s.Lab.StartPatroni(ctx, options)
	s.OK(err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Patroni:\n%s", s.p.LogTail(30))
		}
		if err := s.p.Close(); err != nil {
			t.Errorf("closing Patroni: %v", err)
		}
	})
	leader := s.leader()
	s.OK(lab.SetupRole(ctx, leader.Node()))
	s.Exec(leader.Node(), "CREATE TABLE t (id int)")
	s.Logical(leader.Node(), "cdc")
	s.known()
	return s
}

// mirrored is begin with Patroni's rules about slots as they should be, and the
// controller at work until the slot is SAFE on every standby.
func mirrored(t *testing.T, config map[string]any) *scene {
	t.Helper()
	rules := map[string]any{"ignore_slots": covering()}
	maps.Copy(rules, config)
	s := begin(t, rules)
	s.run()
	s.safe("cdc")
	return s
}

// consumed is mirrored, under a live consumer.
func consumed(t *testing.T, config map[string]any) (*scene, *life) {
	t.Helper()
	s := mirrored(t, config)
	l := s.live()
	s.goesOn(l)
	return s, l
}

// known waits until each member's key says that its server runs: until then it is
// no candidate to Patroni.
func (s *scene) known() {
	s.T.Helper()
	s.until("the members' keys to say that they run", func() (bool, string) {
		keys, err := s.p.Keys(s.Ctx)
		s.OK(err)
		for name, text := range keys {
			if strings.HasPrefix(name, "members/") && !strings.Contains(text, `"state":"running"`) && !strings.Contains(text, `"state":"streaming"`) {
				return false, name + ": " + text
			}
		}
		return true, ""
	})
}

// run starts the controller. It knows nothing of the members but Patroni's scope.
func (s *scene) run(more ...string) {
	s.T.Helper()
	d, err := s.Lab.StartDaemon(lab.DaemonOptions{Binary: harness.Binary(s.T), Patroni: s.p, More: strings.Join(more, "\n")})
	s.OK(err)
	s.Daemon = d
}

func (s *scene) leader() *lab.PatroniMember {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, patience)
	defer cancel()
	leader, err := s.p.Leader(ctx)
	s.OK(err)
	return leader
}

// standbys are all members that run, but the leader.
func (s *scene) standbys() []*lab.Node {
	s.T.Helper()
	var nodes []*lab.Node
	for _, m := range s.p.Others(s.leader()) {
		if m.Running() {
			nodes = append(nodes, m.Node())
		}
	}
	return nodes
}

// safe waits until the slots are SAFE on every standby that runs.
func (s *scene) safe(slots ...string) {
	s.T.Helper()
	var names []string
	for _, n := range s.standbys() {
		names = append(names, n.Name())
	}
	ctx, cancel := context.WithTimeout(s.Ctx, patience)
	defer cancel()
	_, err := s.Daemon.WaitSafe(ctx, slots, names, nil)
	s.OK(err)
}

// in gives a context for one operation on the cluster.
func (s *scene) in(do func(context.Context) error) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, patience)
	defer cancel()
	s.OK(do(ctx))
}

// pair waits for a verdict, as the harness does, with this package's patience.
func (s *scene) pair(slot, standby string, state plan.State, reason plan.Reason) {
	s.T.Helper()
	began := time.Now()
	s.until(fmt.Sprintf("%s on %s to be %s %s", slot, standby, state, reason), func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		p, ok := harness.Pair(doc, slot, standby)
		return ok && p.Verdict == state && p.Reason == reason && doc.ObservedAt.After(began), fmt.Sprintf("it is %s %s: %s", p.Verdict, p.Reason, p.Message)
	})
}

func (s *scene) until(what string, condition func() (bool, string)) {
	s.T.Helper()
	deadline := time.Now().Add(patience)
	for {
		done, why := condition()
		if done {
			return
		}
		if time.Now().After(deadline) || s.Ctx.Err() != nil {
			s.T.Fatalf("waiting for %s: %s", what, why)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// told waits for a condition about a subject, and gives how many of its code stand.
func (s *scene) told(code, subject string) {
	s.T.Helper()
	s.until("condition "+code+" "+subject, func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		for _, f := range doc.Conditions {
			if f.Code == code && f.Subject == subject {
				return true, ""
			}
		}
		return false, fmt.Sprint(doc.Conditions)
	})
}

// untold waits until no condition of a code stands.
func (s *scene) untold(code string) {
	s.T.Helper()
	s.until("no condition "+code, func() (bool, string) {
		doc, ok := s.Status()
		for _, f := range doc.Conditions {
			if f.Code == code {
				return false, f.Message
			}
		}
		return ok && doc.Primary != nil, "the controller does not answer"
	})
}
