package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// gated is a primary with two standbys, a slot that is safe on both, and an etcd
// that outlives the controller.
type gated struct {
	*harness.Scene
	etcd   *lab.Etcd
	config string
}

func newGated(t *testing.T) gated {
	t.Helper()
	s := harness.New(t, harness.Options{Standbys: 2})
	g := gated{Scene: s, etcd: s.Etcd(lab.EtcdOptions{Members: 1})}
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	g.config = s.RunWith(lab.DaemonOptions{Etcd: g.etcd.Section(nil)}).Config()
	s.Safe([]string{"cdc"})
	return g
}

// ask wants an answer of one line that says these words, and the exit code.
func (g gated) ask(code int, node *lab.Node, words ...string) string {
	g.T.Helper()
	r := harness.Command(g.T, g.Ctx, "gate", "--config", g.config, "--node", node.Name())
	line := r.Stderr
	if r.Code != code || strings.Count(line, "\n") != 1 || r.Stdout != "" {
		g.T.Errorf("the gate of %s ends with %d, want %d, and says\n%s%s", node.Name(), r.Code, code, r.Stdout, line)
	}
	for _, w := range words {
		if !strings.Contains(line, w) {
			g.T.Errorf("the gate of %s says nothing of %q:\n%s", node.Name(), w, line)
		}
	}
	return line
}

// with gives the configuration a promotion section.
func (g gated) with(section string) {
	g.T.Helper()
	path := g.config
	text, err := os.ReadFile(path)
	g.OK(err)
	kept, _, _ := strings.Cut(string(text), "promotion:")
	g.OK(os.WriteFile(path, []byte(kept+"promotion: "+section+"\n"), 0o600))
}

// The node that lacks a slot is refused while the other one has it, is told of,
// and is let through once the refusals are spent; the one that has it is allowed.
func TestGatePrefersTheNodeThatHasTheSlots(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.FreezeDaemon()
	g.Exec(g.B, "SELECT pg_drop_replication_slot('cdc')")
	g.leaveBehind()
	g.OK(g.A.Kill(g.Ctx))
	for _, count := range []string{"1 of 3", "2 of 3", "3 of 3"} {
		g.ask(3, g.B, "refuse ("+count+")", "cdc slot_missing", "c loses nothing")
	}
	g.ask(0, g.B, "after 3 refusals", "cdc slot_missing")
	g.ask(0, g.C, "c can serve 1 slot")
	g.with("{policy: strict}")
	g.ask(3, g.B, "promotion.policy is strict", "set promotion.policy to prefer")
	g.with("{policy: observe}")
	g.ask(0, g.B, "policy is observe", "cdc slot_missing")
	g.noted("observed", "strict", "refusals_spent", "better_candidate", "safe")
}

// leaveBehind has c receive whatever b has, and b no more: the primary writes of its
// own accord too.
func (g gated) leaveBehind() {
	g.T.Helper()
	g.CutOff(g.B)
	g.OK(g.C.WaitCatchup(g.Ctx, g.A))
}

// noted wants the answers of these codes to be kept in etcd.
func (g gated) noted(codes ...string) {
	g.T.Helper()
	text := g.etcdValue("/slotkeeper/lab/gate")
	for _, code := range codes {
		if !strings.Contains(text, `"code":"`+code+`"`) {
			g.T.Errorf("etcd keeps no answer %s: %s", code, text)
		}
	}
}

func (g gated) etcdValue(key string) string {
	g.T.Helper()
	client, err := g.etcd.Client(g.Ctx)
	g.OK(err)
	defer func() { _ = client.Close() }()
	resp, err := client.Get(g.Ctx, key)
	g.OK(err)
	if len(resp.Kvs) != 1 {
		g.T.Fatalf("etcd has %d keys %s", len(resp.Kvs), key)
	}
	return string(resp.Kvs[0].Value)
}

// With nobody better, because the other is behind, unsafe or dead, the node is let
// through at once, and the line says what that costs.
func TestGateLetsThroughWhatNobodyWouldBetter(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.FreezeDaemon()
	g.Exec(g.B, "SELECT pg_drop_replication_slot('cdc')")
	g.OK(g.C.StopFast(g.Ctx))
	g.Exec(g.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	g.OK(g.B.WaitCatchup(g.Ctx, g.A))
	g.OK(g.A.Kill(g.Ctx))
	g.ask(0, g.B, "no_safe_candidate", "cdc slot_missing", "c: ", "promotion.policy: strict would refuse")
	g.OK(g.C.Start(g.Ctx))
	g.Wait("c to take connections", func() (bool, string) {
		return g.C.Exec(g.Ctx, "SELECT 1") == nil, "it does not"
	})
	g.ask(0, g.B, "no_safe_candidate", "less WAL")
}

// A reign that no controller saw: A to B, and B dies. C's mirror was proven on A's
// timeline, and nobody knows what B removed (D18). It is dropped before C is let
// through, so that no consumer finds it.
func TestD18GateDropsWhatNobodyHasSeenHeld(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.FreezeDaemon()
	g.OK(g.A.Kill(g.Ctx))
	g.OK(g.B.Promote(g.Ctx))
	g.OK(g.C.Follow(g.Ctx, g.B))
	g.OK(g.C.WaitCatchup(g.Ctx, g.B))
	g.OK(g.B.Kill(g.Ctx))
	g.with("{policy: strict}")
	g.ask(3, g.C, "cdc protection_gap", "proven on timeline 1, this node is on 2")
	if !g.Has(g.C, "cdc") {
		t.Error("a refusal has dropped the mirror")
	}
	g.with("{policy: prefer}")
	g.ask(0, g.C, "no_safe_candidate", "cdc protection_gap", "dropped, because it is not proven: cdc")
	if g.Has(g.C, "cdc") {
		t.Error("the unproven mirror is still there")
	}
}

// Whatever is down or hangs, there is an answer, and in mode prefer it is not in
// the way; what was not looked at is said.
func TestC33GateAnswersWhateverIsDown(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.StopDaemon()
	config := g.config
	text, err := os.ReadFile(config)
	g.OK(err)

	g.OK(g.B.Freeze())
	g.with("{deadline: 8s}")
	g.ask(3, g.B, "c loses nothing")
	g.OK(g.C.Freeze())
	g.ask(0, g.B, "no answer in time")
	g.with("{deadline: 8s, policy: strict}")
	g.ask(3, g.B, "strict")
	g.with("{deadline: 8s}")
	g.OK(g.B.Thaw())
	g.OK(g.C.Thaw())

	g.OK(g.etcd.KillAll(g.Ctx))
	g.ask(0, g.B, "the ledger could not be read")
	g.OK(os.WriteFile(config, slices.Concat(text, []byte("nonsense: 1\n")), 0o600))
	g.ask(0, g.B, "nothing was looked at", "nonsense")
	g.OK(os.Remove(config))
	g.ask(0, g.B, "nothing was looked at", filepath.Base(config))
	g.OK(os.WriteFile(config, text, 0o600))
	r := harness.Command(t, g.Ctx, "gate", "--config", config)
	if r.Code != 2 || !strings.Contains(r.Stderr, "--node is missing") {
		t.Errorf("without --node it ends with %d: %s", r.Code, r.Stderr)
	}
}

// Where its line goes may be full, or read by nobody: the answer is the
// same, and in time. A configuration that never comes is not waited for.
func TestC33GateAnswersWithoutItsLine(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	g.OK(err)
	defer full.Close()
	read, stuck, err := os.Pipe()
	g.OK(err)
	defer read.Close()
	defer stuck.Close()
	g.OK(stuck.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)))
	for _, err := stuck.Write(make([]byte, 1<<20)); err == nil; _, err = stuck.Write(make([]byte, 1<<20)) {
	}
	g.FreezeDaemon()
	g.Exec(g.B, "SELECT pg_drop_replication_slot('cdc')")
	g.leaveBehind()
	for what, out := range map[string]*os.File{"a full disk": full, "a pipe that nobody reads": stuck} {
		for node, want := range map[string]int{"b": 3, "c": 0} {
			cmd := exec.CommandContext(g.Ctx, harness.Binary(t), "gate", "--config", g.config, "--node", node)
			cmd.Env, cmd.Stderr = lab.Environment(), out
			_ = cmd.Run() // the code says it
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("with %s the gate of %s ends with %d, want %d", what, node, code, want)
			}
		}
	}
	pipe := filepath.Join(t.TempDir(), "slotkeeper.yaml")
	g.OK(syscall.Mkfifo(pipe, 0o600))
	g.config = pipe
	g.ask(0, g.B, "nothing was looked at", "could not be read in time")
	g.config = t.TempDir()
	g.ask(0, g.B, "nothing was looked at", "it is no regular file")
}

// The consumer has confirmed what the candidate never received (C08).
func TestC08GateKnowsHowFarTheConsumerIs(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.OK(g.B.StopFast(g.Ctx))
	g.Exec(g.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	g.Get(g.A, "cdc")
	g.Exec(g.A, "CHECKPOINT")
	confirmed := g.Slot(g.A, "cdc").Confirmed
	g.Wait("the controller to see how far the consumer is", func() (bool, string) {
		now, ok := g.Status()
		return ok && len(now.Slots) == 1 && now.Slots[0].Confirmed.Or(0) == confirmed, "it has not"
	})
	g.StopDaemon() // what a status has shown is in the ledger then
	g.OK(g.A.Kill(g.Ctx))
	g.OK(g.B.Start(g.Ctx))
	g.Wait("b to take connections", func() (bool, string) {
		return g.B.Exec(g.Ctx, "SELECT 1") == nil, "it does not"
	})
	g.ask(3, g.B, "cdc "+string(plan.ReasonConsumerAhead), "would be gone", "c loses nothing")
	g.ask(0, g.C, "c can serve 1 slot")
}

// Asked about a node that is a primary already, the gate allows and leaves its slots
// alone: they are no mirrors that lack a proof.
func TestGateLeavesThePrimaryAlone(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.ask(0, g.A, "a is a primary already")
	g.with("{policy: strict}")
	g.ask(0, g.A, "a is a primary already")
	if !g.Has(g.A, "cdc") {
		t.Error("the gate has dropped the primary's slot")
	}
}

// A look by hand changes nothing: no mirror is dropped, and no refusal counts.
func TestGateDryRun(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.FreezeDaemon()
	g.Exec(g.B, "SELECT pg_drop_replication_slot('cdc')")
	g.leaveBehind()
	g.ask(3, g.B, "refuse (1 of 3)")
	noted := g.etcdValue("/slotkeeper/lab/gate")
	for range 2 {
		r := harness.Command(t, g.Ctx, "gate", "--dry-run", "--config", g.config, "--node", "b")
		if r.Code != 3 || !strings.Contains(r.Stderr, "refuse (2 of 3)") {
			t.Errorf("%+v", r)
		}
	}
	if now := g.etcdValue("/slotkeeper/lab/gate"); now != noted {
		t.Errorf("it was noted: %s", now)
	}
}
