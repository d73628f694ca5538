package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// CopyOf fills the node with a copy of another's folder, slots and all, as it was
// at one moment: as a crash at that moment, or a snapshot of the disk, would leave
// it. A running source stands still meanwhile. The copy of a standby is a standby
// without an upstream; Start and Promote it.
func (n *Node) CopyOf(ctx context.Context, source *Node) error {
	if err := n.copyFolder(ctx, source); err != nil {
		return fmt.Errorf("copying the folder of node %q to %q: %w", source.name, n.name, err)
	}
	if err := os.Remove(filepath.Join(n.data, "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("copying the folder of node %q to %q: %w", source.name, n.name, err)
	}
	// Of the source's settings none may lead it to the source's upstream.
	return n.writeSettings()
}

func (n *Node) copyFolder(ctx context.Context, source *Node) (err error) {
	if server := source.running(); server != nil {
		defer func() { err = errors.Join(err, server.signalTree(syscall.SIGCONT)) }()
		if err := server.standStill(ctx); err != nil {
			return err
		}
	}
	out, err := exec.CommandContext(ctx, "cp", "-a", source.data, n.data).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// standStill stops a process and all its children: the parent first, so that it
// forks nobody unseen.
func (p *process) standStill(ctx context.Context) error {
	children, err := p.freezeParent(ctx)
	if err != nil {
		return err
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping process %d: %w", pid, err)
		}
	}
	return poll(ctx, time.Millisecond, "the server's processes to stand still", func() (bool, error) {
		for _, pid := range children {
			if state, _, err := procState(pid); err == nil && state != 'T' && state != 'Z' && state != 'X' {
				return false, nil
			}
		}
		return true, nil
	})
}

// Remove ends a node at once and takes its folder away; its name is free
// again. Its messages stay.
func (c *Cluster) Remove(ctx context.Context, n *Node) error {
	if err := errors.Join(n.StopImmediate(ctx), n.removeSegment(), os.RemoveAll(n.data)); err != nil {
		return fmt.Errorf("removing node %q: %w", n.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = slices.DeleteFunc(c.nodes, func(other *Node) bool { return other == n })
	return nil
}
