package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotRunning says that a node's server is not started.
var ErrNotRunning = errors.New("the server is not running")

// Start starts the server and returns when it takes connections: a primary
// after recovery, a standby as soon as it is consistent.
func (n *Node) Start(ctx context.Context) error {
	if n.Running() {
		return fmt.Errorf("starting node %q: it is running", n.name)
	}
	if n.cluster.isClosed() {
		return fmt.Errorf("starting node %q: %w", n.name, ErrClosed)
	}
	messages, err := os.OpenFile(n.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting node %q: %w", n.name, err)
	}
	defer func() { _ = messages.Close() }() // the server has its own copy of the descriptor
	cmd := exec.Command(filepath.Join(n.cluster.bin, "postgres"), "-D", n.data)
	cmd.Dir, cmd.Env = n.cluster.dir, append(Environment(), n.variables()...)
	cmd.Stdout, cmd.Stderr = messages, messages
	// SIGQUIT is an immediate shutdown: the postmaster takes its children along.
	cmd.SysProcAttr = attributes(n.cluster.user, syscall.SIGQUIT)
	server, err := n.cluster.spawner.spawn(cmd)
	if err != nil {
		return fmt.Errorf("starting node %q: %w", n.name, err)
	}
	n.hold(server)
	return n.waitReady(ctx, server)
}

func (n *Node) variables() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.env)
}

// waitReady reads the postmaster's own word in its lock file, as pg_ctl does:
// connecting in a loop would fill the server's log with refusals.
func (n *Node) waitReady(ctx context.Context, server *process) error {
	began := time.Now()
	what := fmt.Sprintf("node %q to take connections", n.name)
	err := poll(ctx, 10*time.Millisecond, what, func() (bool, error) {
		if !server.alive() {
			return false, fmt.Errorf("the server ended (%w); its last messages:\n%s", server.err, n.LogTail(10))
		}
		text, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
		if err != nil {
			return false, nil // not written yet
		}
		lines := strings.Split(string(text), "\n")
		return len(lines) >= 8 && lines[0] == strconv.Itoa(server.pid()) && strings.TrimSpace(lines[7]) == "ready", nil
	})
	if err != nil {
		return err
	}
	n.log.Debug("server started", "port", n.port, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (c *Cluster) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// StopFast shuts the server down in order: sessions are ended, a checkpoint is
// written, standbys and consumers have received all. Stopping a stopped server
// is no error.
func (n *Node) StopFast(ctx context.Context) error { return n.stop(ctx, syscall.SIGINT) }

// StopImmediate ends the server without a checkpoint; the next start recovers.
func (n *Node) StopImmediate(ctx context.Context) error { return n.stop(ctx, syscall.SIGQUIT) }

func (n *Node) stop(ctx context.Context, signal syscall.Signal) error {
	server := n.running()
	if server == nil {
		return nil
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultPatience)
		defer cancel()
	}
	// A frozen server hears nothing but this.
	if err := server.signalTree(syscall.SIGCONT); err != nil {
		return fmt.Errorf("stopping node %q: %w", n.name, err)
	}
	if err := server.stop(ctx, signal); err != nil {
		return fmt.Errorf("stopping node %q: %w", n.name, err)
	}
	n.log.Debug("server stopped", "signal", signal)
	return nil
}

// Kill ends the postmaster and all its children by SIGKILL and returns when
// none of them is left: the crash of the whole server.
func (n *Node) Kill(ctx context.Context) error {
	server := n.running()
	if server == nil {
		return fmt.Errorf("killing node %q: %w", n.name, ErrNotRunning)
	}
	if err := server.killTree(ctx); err != nil {
		return fmt.Errorf("killing node %q: %w", n.name, err)
	}
	n.log.Debug("server killed")
	return nil
}

// Freeze stops all of the server's processes (SIGSTOP): to its peers it is a
// machine that does not answer. Thaw lets them go on.
func (n *Node) Freeze() error { return n.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (n *Node) Thaw() error { return n.signal(syscall.SIGCONT) }

func (n *Node) signal(signal syscall.Signal) error {
	server := n.running()
	if server == nil {
		return fmt.Errorf("sending %s to node %q: %w", signal, n.name, ErrNotRunning)
	}
	return server.signalTree(signal)
}

// Restart is StopFast and Start.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.StopFast(ctx); err != nil {
		return err
	}
	return n.Start(ctx)
}

// Promote makes a standby a primary and returns when it takes writes.
func (n *Node) Promote(ctx context.Context) error {
	conn, err := n.Connect(ctx, "", "")
	if err != nil {
		return fmt.Errorf("promoting node %q: %w", n.name, err)
	}
	defer closeConn(conn)
	// pg_promote's own waiting looks ten times a second, which is too coarse to measure with.
	if _, err := conn.Exec(ctx, "SELECT pg_promote(wait => false)"); err != nil {
		return fmt.Errorf("promoting node %q: %w", n.name, err)
	}
	return poll(ctx, 5*time.Millisecond, fmt.Sprintf("node %q to be promoted", n.name), func() (bool, error) {
		var recovering bool
		err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&recovering)
		return !recovering, err
	})
}
