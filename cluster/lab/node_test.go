package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// newLab gives a lab that is closed, and checked to be gone, when the test ends.
func newLab(t *testing.T) (context.Context, *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c, err := NewCluster(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the lab's folder %s is still there: %v", c.Dir(), err)
		}
	})
	return ctx, c
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// One walk through a node's life: servers are too dear to start for each step.
func TestNodesFailOver(t *testing.T) {
	ctx, c := newLab(t)
	a := must(c.AddPrimary(ctx, "a"))(t)
	b := must(c.AddStandby(ctx, "b", a, StandbyOptions{Feedback: true}))(t)
	d := must(c.AddStandby(ctx, "d", a, StandbyOptions{ApplyDelay: 150 * time.Millisecond}))(t)
	// A rewound node begins at its last checkpoint before the fork, older than any slot of its own.
	ok(t, b.Set(ctx, map[string]string{"wal_keep_size": "256MB"}))
	ok(t, a.Exec(ctx, "CREATE TABLE t (v int); INSERT INTO t VALUES (1)"))
	ok(t, b.WaitCatchup(ctx, a))
	ok(t, d.WaitCatchup(ctx, a))
	checkSettings(ctx, t, b, map[string]string{"hot_standby_feedback": "on", "wal_level": "logical", "primary_slot_name": "lab_b"})
	checkSettings(ctx, t, d, map[string]string{"hot_standby_feedback": "off", "recovery_min_apply_delay": "150ms"})

	// A killed server leaves nobody who could still write, and nobody listening.
	postmaster := a.PID()
	children := must(childrenOf(postmaster))(t)
	if len(children) < 3 {
		t.Fatalf("a running server has %d children, want more", len(children))
	}
	ok(t, a.Kill(ctx))
	for _, pid := range append(children, postmaster) {
		if state, _, err := procState(pid); err == nil && state != 'Z' {
			t.Errorf("process %d of the killed server is in state %c", pid, state)
		}
	}
	if err := a.Exec(ctx, "SELECT 1"); err == nil {
		t.Error("the killed server answers")
	}

	ok(t, b.Promote(ctx))
	ok(t, d.Follow(ctx, b))
	ok(t, b.Exec(ctx, "INSERT INTO t VALUES (2)"))
	ok(t, d.WaitCatchup(ctx, b))
	ok(t, a.Rewind(ctx, b))
	ok(t, a.Start(ctx))
	ok(t, a.WaitCatchup(ctx, b))
	for _, n := range c.Nodes() {
		var sum int
		ok(t, n.QueryRow(ctx, "SELECT sum(v) FROM t").Scan(&sum))
		if sum != 3 {
			t.Errorf("node %s has the sum %d, want 3", n.Name(), sum)
		}
	}
	ok(t, b.Restart(ctx))
	ok(t, b.Exec(ctx, "INSERT INTO t VALUES (3)"))
}

// A standby of a standby follows it through its promotion.
func TestNodesCascade(t *testing.T) {
	ctx, c := newLab(t)
	a := must(c.AddPrimary(ctx, "a"))(t)
	b := must(c.AddStandby(ctx, "b", a, StandbyOptions{}))(t)
	d := must(c.AddStandby(ctx, "d", b, StandbyOptions{}))(t)
	for _, upstream := range []*Node{a, b} {
		var count int
		ok(t, upstream.QueryRow(ctx, "SELECT count(*) FROM pg_stat_replication").Scan(&count))
		if count != 1 {
			t.Errorf("%d nodes stream from %s, want one", count, upstream.Name())
		}
	}
	ok(t, a.Exec(ctx, "CREATE TABLE t (v int)"))
	ok(t, d.WaitCatchup(ctx, a))
	ok(t, a.Kill(ctx))
	ok(t, b.Promote(ctx))
	ok(t, b.Exec(ctx, "INSERT INTO t VALUES (1)"))
	ok(t, d.WaitCatchup(ctx, b))
}

func checkSettings(ctx context.Context, t *testing.T, n *Node, want map[string]string) {
	t.Helper()
	for name, value := range want {
		var got string
		ok(t, n.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got))
		if got != value {
			t.Errorf("node %s has %s = %q, want %q", n.Name(), name, got, value)
		}
	}
}

func TestNodeThatCannotStartSaysWhy(t *testing.T) {
	ctx, c := newLab(t)
	n := must(c.NewNode("a"))(t)
	ok(t, n.Init(ctx))
	ok(t, n.Set(ctx, map[string]string{"shared_buffers": "nonsense"}))
	err := n.Start(ctx)
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Fatalf("starting with a bad setting gives %v, want the server's own words", err)
	}
	if n.Running() {
		t.Error("it is running all the same")
	}
	ok(t, n.Set(ctx, map[string]string{"shared_buffers": ""}))
	ok(t, n.Start(ctx))
	if err := n.Start(ctx); err == nil {
		t.Error("starting twice is no error")
	}
	// A frozen server does not answer, and can still be stopped.
	ok(t, n.Freeze())
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := n.Exec(short, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server gives %v, want the deadline", err)
	}
	ok(t, n.StopFast(ctx))
	if err := n.Kill(ctx); !errors.Is(err, ErrNotRunning) {
		t.Errorf("killing a stopped server gives %v, want ErrNotRunning", err)
	}
}

// The servers must not outlive a lab that died without closing anything.
func TestServersDieWithTheLab(t *testing.T) {
	if os.Getenv("SLOTKEEPER_LAB_VICTIM") != "" {
		c := must(NewCluster(t.Context(), Options{Dir: os.Getenv("SLOTKEEPER_LAB_VICTIM")}))(t)
		must(c.AddPrimary(t.Context(), "a"))(t)
		select {} // until it is killed
	}
	ctx, c := newLab(t)
	cmd := victim(t, c.Dir())
	child := must(c.spawner.spawn(cmd))(t)
	var pid int
	ok(t, poll(ctx, 20*time.Millisecond, "the other lab's server", func() (bool, error) {
		var err error
		pid, err = readyServer(c.Dir())
		return pid != 0, err
	}))
	ok(t, child.stop(ctx, syscall.SIGKILL))
	ok(t, poll(ctx, 10*time.Millisecond, "the orphaned server to end", func() (bool, error) {
		state, _, err := procState(pid)
		return err != nil || state == 'Z', nil
	}))
}

// A killed server leaves shared memory that the machine has only so much of.
func TestKilledServerLeavesNoSharedMemory(t *testing.T) {
	ctx, c := newLab(t)
	n := must(c.AddPrimary(ctx, "a"))(t)
	lock := strings.Split(string(must(os.ReadFile(filepath.Join(n.DataDir(), "postmaster.pid")))(t)), "\n")
	id := must(strconv.Atoi(strings.Fields(lock[6])[1]))(t)
	left := func() bool {
		_, err := unix.SysvShmCtl(id, unix.IPC_STAT, &unix.SysvShmDesc{})
		return err == nil
	}
	ok(t, n.Kill(ctx))
	if !left() {
		t.Fatal("it left none: this test shows nothing")
	}
	if files := must(os.ReadDir(filepath.Join(n.DataDir(), "pg_dynshmem")))(t); len(files) == 0 {
		t.Error("its dynamic shared memory is not in the data folder")
	}
	ok(t, c.Close())
	if left() {
		t.Error("its segment is left")
	}
}

// pg_basebackup and initdb have processes of their own, which hold their output open.
func TestInterruptedProgramsEndAtOnce(t *testing.T) {
	_, c := newLab(t)
	c.bin = c.Dir()
	ok(t, os.WriteFile(filepath.Join(c.bin, "initdb"), []byte("#!/bin/sh\nsleep 600 & echo $! >pid.new; mv pid.new pid; wait\n"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.run(ctx, "initdb") }()
	var child int
	ok(t, poll(t.Context(), 10*time.Millisecond, "the program's child", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(c.dir, "pid"))
		child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil, nil
	}))
	cancel()
	if err := <-ended; err == nil {
		t.Errorf("got %v", err)
	}
	ok(t, poll(t.Context(), 10*time.Millisecond, "the child to be gone", func() (bool, error) {
		state, _, err := procState(child)
		return err != nil || state == 'Z', nil
	}))
}

func TestFindPG(t *testing.T) {
	dir := must(FindPG(DefaultMajor))(t)
	t.Setenv("SLOTKEEPER_PG14", dir)
	if _, err := FindPG(14); !errors.Is(err, ErrNoPG) || !strings.Contains(err.Error(), "want 14") {
		t.Errorf("a folder of another major gives %v", err)
	}
	t.Setenv("SLOTKEEPER_PG14", t.TempDir())
	if _, err := FindPG(14); !errors.Is(err, ErrNoPG) {
		t.Errorf("an empty folder gives %v", err)
	}
	if _, err := FindPG(1); !errors.Is(err, ErrNoPG) || !strings.Contains(err.Error(), "SLOTKEEPER_PG1") {
		t.Errorf("a major that does not exist gives %v, want the variable named", err)
	}
}

func TestWaitsEnd(t *testing.T) {
	ctx, c := newLab(t)
	a := must(c.AddPrimary(ctx, "a"))(t)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := a.WaitReplay(short, cluster.LSN(1)<<60); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes gives %v, want the deadline", err)
	}
}
