package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrClosed says that the cluster was closed.
var ErrClosed = errors.New("the lab is closed")

// spawner starts processes from one thread that lives as long as the cluster.
// The kernel sends the parent-death signal when the starting *thread* ends, not
// the process (prctl(2), PR_SET_PDEATHSIG), and Go gives no promise about the
// life of a thread that runs arbitrary goroutines.
type spawner struct {
	jobs chan func()
	quit chan struct{}
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go s.loop()
	return s
}

func (s *spawner) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.done)
	for {
		select {
		case job := <-s.jobs:
			job()
		case <-s.quit:
			return
		}
	}
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	select {
	case s.jobs <- func() { result <- cmd.Start() }:
		return <-result
	case <-s.quit:
		return ErrClosed
	}
}

func (s *spawner) close() {
	close(s.quit)
	<-s.done
}

// attributes puts a child into its own process group, so that a Ctrl-C on the
// terminal reaches only the program that knows how to stop everything in order.
func attributes(credential *syscall.Credential, death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death, Credential: credential}
}

// process is a child that is waited for from the start.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the child was reaped
	err    error         // of Wait; read it after exited
}

func (s *spawner) spawn(cmd *exec.Cmd) (*process, error) {
	if err := s.start(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop sends a signal and waits until the process is gone.
func (p *process) stop(ctx context.Context, signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to process %d: %w", signal, p.pid(), err)
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for process %d to end after %s: %w", p.pid(), signal, ctx.Err())
	}
}

// killForeign is killTree for a process that is nobody's child here.
func killForeign(ctx context.Context, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); errors.Is(err, syscall.ESRCH) {
		return nil
	} else if err != nil {
		return fmt.Errorf("stopping process %d: %w", pid, err)
	}
	if err := waitStopped(ctx, pid); err != nil {
		return err
	}
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	return killAll(ctx, append(children, pid))
}

// killTree ends a process and its children with SIGKILL and waits until none is
// left. The parent is stopped first, so that it forks nobody unseen.
func (p *process) killTree(ctx context.Context) error {
	if !p.alive() {
		return nil
	}
	children, err := p.freezeParent(ctx)
	if err != nil {
		return err
	}
	if err := p.stop(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	return killAll(ctx, children)
}

// killAll ends processes with SIGKILL and waits until none is left.
func killAll(ctx context.Context, pids []int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d: %w", pid, err)
		}
	}
	return poll(ctx, time.Millisecond, "the killed processes to be gone", func() (bool, error) {
		for _, pid := range pids {
			if state, _, err := procState(pid); err == nil && state != 'Z' && state != 'X' {
				return false, nil
			}
		}
		return true, nil
	})
}

func (p *process) freezeParent(ctx context.Context) ([]int, error) {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("stopping process %d: %w", p.pid(), err)
	}
	if err := waitStopped(ctx, p.pid()); err != nil {
		return nil, err
	}
	return childrenOf(p.pid())
}

func waitStopped(ctx context.Context, pid int) error {
	return poll(ctx, time.Millisecond, "the process to stop", func() (bool, error) {
		state, _, err := procState(pid)
		return err != nil || state == 'T' || state == 'Z' || state == 'X', nil
	})
}

// signalTree sends a signal to a process and its children: SIGSTOP and SIGCONT.
func (p *process) signalTree(signal syscall.Signal) error {
	children, err := childrenOf(p.pid())
	if err != nil {
		return err
	}
	for _, pid := range append([]int{p.pid()}, children...) {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %s to process %d: %w", signal, pid, err)
		}
	}
	return nil
}

// procState reads state and parent of a process; its name may hold anything,
// also parentheses, so what counts begins after the last one.
func procState(pid int) (state byte, parent int, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("reading the state of process %d: unexpected text %q", pid, stat)
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err
}

func childrenOf(parent int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var children []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if _, of, err := procState(pid); err == nil && of == parent {
			children = append(children, pid)
		}
	}
	return children, nil
}

// removeSegment removes the System V segment by which a server that was killed
// marks its data folder as in use. Nobody else would: the next start does, and
// there is none. The lock file says key and id of it.
func (n *Node) removeSegment() error {
	text, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it ended in order
	}
	if err != nil {
		return fmt.Errorf("reading the lock file of node %q: %w", n.name, err)
	}
	lines := strings.Split(string(text), "\n")
	var key uint32
	var id int
	if len(lines) < 7 {
		return nil // it died before it had one
	}
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return nil
	}
	var segment unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); err != nil || uint32(segment.Perm.Key) != key || segment.Nattch != 0 {
		return nil // gone already, and the number may be another's
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("removing the shared memory of node %q: %w", n.name, err)
	}
	return nil
}
