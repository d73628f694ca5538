package cases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// keptOut wants a controller to be refused by every node, to say so and what
// may be done about it, and to have written nothing.
func keptOut(s *harness.Scene, owner string) {
	s.T.Helper()
	found := s.Condition("foreign_epoch")
	if found.Severity != plan.Critical || !strings.Contains(found.Hint, "--take-over") {
		s.T.Errorf("foreign_epoch is %s with the hint %q", found.Severity, found.Hint)
	}
	s.Verdict("cdc", s.B, plan.Unsafe, plan.ReasonFenced)
	s.Cycles(3)
	for _, n := range s.Nodes() {
		if f := s.Fence(n); f.Owner != owner {
			s.T.Errorf("the fence of %s was raised by %s", n.Name(), f.Owner)
		}
	}
	shown := s.Slotkeeper("status")
	if shown.Code != 3 || !strings.Contains(shown.Stdout, "foreign_epoch") {
		s.T.Errorf("status ends with %d and says:\n%s", shown.Code, shown.Stdout)
	}
}

// led is a scene with a slot that is SAFE.
func led(t *testing.T) *harness.Scene {
	t.Helper()
	s := harness.New(t, harness.Options{})
	s.Consumed(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})
	return s
}

// D13: two controllers, each with an embedded etcd of its own.
func TestD13TwoEmbeddedEtcds(t *testing.T) {
	t.Parallel()
	s := led(t)
	first, mirror := s.Daemon, s.Incarnation(s.B, "cdc")
	s.RunWith(lab.DaemonOptions{Name: "other"})
	keptOut(s, "lab")
	s.StopDaemon()

	second := s.RunWith(lab.DaemonOptions{Name: "other", Args: []string{"--take-over"}})
	s.Owned("other")
	s.Safe([]string{"cdc"})

	s.Daemon = first // it lives, and is the one that is refused now
	keptOut(s, "other")
	s.StopDaemon()
	s.Daemon = second
	s.Safe([]string{"cdc"})
	if now := s.Incarnation(s.B, "cdc"); now != mirror {
		t.Error("the mirror was made anew")
	}
}

// D13: the data of the embedded etcd is gone.
func TestD13WipedEtcd(t *testing.T) {
	t.Parallel()
	s := led(t)
	mirror, store := s.Incarnation(s.B, "cdc"), s.Fence(s.A).Store
	s.StopDaemon()
	wipe(s)
	s.Run()
	keptOut(s, "lab")
	if s.Fence(s.A).Store != store {
		t.Error("the fence of the old etcd is gone")
	}
	s.StopDaemon()
	s.RunWith(lab.DaemonOptions{Args: []string{"--take-over"}})
	s.Safe([]string{"cdc"})

	// Nobody raises the fence for long: then it needs no word of the operator. That
	// the node's clock says so is not enough, clocks jump: it is watched for.
	s.StopDaemon()
	wipe(s)
	s.AgeFences(time.Hour)
	s.RunWith(lab.DaemonOptions{Etcd: "etcd: {data_dir: ./etcd, lease_ttl: 2s}\n"})
	keptOut(s, "lab")
	s.Safe([]string{"cdc"})
	s.NoCondition("foreign_epoch")
	if now := s.Incarnation(s.B, "cdc"); now != mirror {
		t.Error("the mirror was made anew")
	}
}

func etcdDir(s *harness.Scene) string { return filepath.Join(s.Lab.Dir(), "controller-lab", "etcd") }

func wipe(s *harness.Scene) {
	s.T.Helper()
	s.OK(os.RemoveAll(etcdDir(s)))
}

// D13: the embedded etcd is restored from an older state, so that its epochs
// begin again where others have been.
func TestD13RestoredEtcd(t *testing.T) {
	t.Parallel()
	s := led(t)
	s.StopDaemon()
	saved := filepath.Join(t.TempDir(), "etcd")
	s.OK(os.CopyFS(saved, os.DirFS(etcdDir(s))))
	// Two later leaders have led, and the mirror of another slot was made.
	s.Run()
	s.Consumed(s.A, "later")
	s.Safe([]string{"cdc", "later"})
	s.StopDaemon()
	s.Run()
	s.Safe([]string{"cdc", "later"})
	mirror := s.Incarnation(s.B, "later")
	s.StopDaemon()

	wipe(s)
	s.OK(os.CopyFS(etcdDir(s), os.DirFS(saved)))
	s.Run()
	keptOut(s, "lab")
	s.StopDaemon()
	s.RunWith(lab.DaemonOptions{Args: []string{"--take-over"}})
	s.Safe([]string{"cdc", "later"})
	s.NoCondition("foreign_epoch")
	if now := s.Incarnation(s.B, "later"); now != mirror {
		t.Error("the mirror was made anew")
	}
}
