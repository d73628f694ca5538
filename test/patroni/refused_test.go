//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A candidate that its own gate refuses is a result of its own: another one leads,
// or the old primary again, and what the gate said is told.
func TestSwitchoverRefusedByTheGate(t *testing.T) {
	t.Parallel()
	s, life := consumed(t, nil)
	from := s.leader()
	to := s.p.Others(from)[0]
	s.losesItsMirror(to)
	doc := s.switchover(3, switchover.OutcomeRefusedByGate, "--yes", "--to", to.Name())
	if doc.Leader == to.Name() || doc.Leader != s.leader().Name() || len(doc.Gate) == 0 || doc.Gate[0].Node != to.Name() || doc.Gate[0].Allow {
		t.Errorf("%+v", doc)
	}
	if !strings.Contains(doc.Message, to.Name()+" was refused by its own gate, and "+doc.Leader+" leads") || !strings.Contains(doc.Message, doc.Gate[0].Line) {
		t.Error(doc.Message)
	}
	for _, slot := range doc.Slots {
		if !slot.Usable {
			t.Errorf("%+v", slot)
		}
	}
	if n := s.requests(); n != 1 {
		t.Errorf("Patroni was asked %d times", n)
	}
	s.forgotten()
	s.goesOn(life)
	s.account(life)
}

// losesItsMirror has a member's mirror vanish after it took the leader key, just
// before its gate is asked.
func (s *scene) losesItsMirror(m *lab.PatroniMember) {
	s.T.Helper()
	s.beforeGate(m, fmt.Sprintf(`import psycopg2
c = psycopg2.connect(host="127.0.0.1", port=%d, user="postgres", dbname="postgres")
c.autocommit = True
c.cursor().execute("SELECT pg_drop_replication_slot('cdc')")
c.close()
`, m.Node().Port()))
}

// beforeGate has a member's pre_promote do something in Python, and become the gate then.
func (s *scene) beforeGate(m *lab.PatroniMember, does string) {
	s.T.Helper()
	folder := filepath.Dir(m.LogFile())
	script := m.Node().DataDir() + ".pre_promote.py"
	s.OK(os.WriteFile(script, fmt.Appendf(nil, `import os
%sos.execv(%q, ["gate", "gate", "--config", %q, "--node", %q])
`, does, filepath.Join(folder, "gate"), filepath.Join(folder, "gate.yaml"), m.Name()), 0o644))
	s.OK(m.Configure(map[string]any{"postgresql": map[string]any{"pre_promote": "/usr/bin/python3 " + script}}))
	// Either is what Patroni says when it has read its file.
	reloads := func() int {
		log := m.LogTail(1 << 20)
		return strings.Count(log, "nothing to reload") + strings.Count(log, "Reloading PostgreSQL configuration")
	}
	before := reloads()
	s.OK(m.Reload())
	s.until("Patroni to have read it", func() (bool, string) { return reloads() > before, m.LogTail(5) })
}

// C37: a bad candidate is refused before Patroni is asked, and so is everything
// while it is paused.
func TestC37BadCandidates(t *testing.T) {
	t.Parallel()
	s := mirrored(t, map[string]any{"synchronous_mode": true})
	from := s.leader()
	var sync, async *lab.PatroniMember
	s.until("one to be synchronous", func() (bool, string) {
		keys, err := s.p.Keys(s.Ctx)
		s.OK(err)
		sync, async = nil, nil
		for _, m := range s.p.Others(from) {
			if strings.Contains(keys["sync"], fmt.Sprintf("%q", m.Name())) {
				sync = m
			} else {
				async = m
			}
		}
		return sync != nil && async != nil, keys["sync"]
	})
	refused := func(says string, args ...string) {
		t.Helper()
		doc := s.switchover(3, switchover.OutcomeRefused, append([]string{"--yes"}, args...)...)
		if !strings.Contains(doc.Message, says) {
			t.Errorf("%s; not %q", doc.Message, says)
		}
	}
	refused("asynchronous", "--to", async.Name())
	refused("it is the leader already", "--to", from.Name())
	refused("it is not a member", "--to", "nobody")

	s.OK(sync.Configure(map[string]any{"tags": map[string]any{"nofailover": true}}))
	s.OK(sync.Reload())
	s.until("the tag to be known", func() (bool, string) {
		key, err := s.p.Key(s.Ctx, "members/"+sync.Name())
		s.OK(err)
		return strings.Contains(key, `"nofailover":true`), key
	})
	refused("nofailover", "--to", sync.Name())

	s.in(func(ctx context.Context) error { return s.p.PatchConfig(ctx, map[string]any{"synchronous_mode": nil}) })
	s.until("the mode to end", func() (bool, string) {
		r := s.Slotkeeper("switchover", "--dry-run", "--to", async.Name())
		return r.Code == 0, r.Stderr
	})
	s.in(func(ctx context.Context) error { return s.p.Pause(ctx, true) })
	refused("Patroni is paused", "--to", async.Name())
	s.in(func(ctx context.Context) error { return s.p.Pause(ctx, false) })
	config := s.Daemon.Config()
	s.StopDaemon()
	r := harness.Command(t, s.Ctx, "switchover", "--yes", "-o", "json", "--config", config)
	if doc := s.document(r); doc.Outcome != switchover.OutcomeUnknown || r.Code != 4 || !strings.Contains(doc.Message, "no controller leads") {
		t.Errorf("with no controller: %+v", r)
	}
	if s.requests() != 0 || s.leader() != from {
		t.Errorf("Patroni was asked %d times, %s leads", s.requests(), s.leader().Name())
	}
	s.forgotten()
}
