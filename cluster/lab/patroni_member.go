package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v4"
)

// PatroniMember is one Patroni with its server.
type PatroniMember struct {
	patroni *Patroni
	node    *Node
	rest    int // port of the REST API

	held // the process of Patroni
}

func (p *Patroni) newMember(name string) (*PatroniMember, error) {
	node, err := p.cluster.NewNode(name)
	if err != nil {
		return nil, err
	}
	// A member's name may hold what a folder's had better not.
	node.data = filepath.Join(p.dir, fmt.Sprintf("member%d", len(p.members)+1))
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	m := &PatroniMember{patroni: p, node: node, rest: port}
	return m, m.Configure(nil)
}

// Name is the member's name.
func (m *PatroniMember) Name() string { return m.node.name }

// Node is the member's server, for SQL. What starts and stops it is Patroni.
func (m *PatroniMember) Node() *Node { return m.node }

// URL is where the REST API listens.
func (m *PatroniMember) URL() string {
	scheme := "http"
	if m.patroni.options.REST["certfile"] != nil {
		scheme = "https"
	}
	return scheme + "://" + m.restAddress()
}

func (m *PatroniMember) restAddress() string {
	host := "127.0.0.1"
	if m.patroni.options.IPv6 {
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(m.rest))
}

// ConfigFile is the member's configuration.
func (m *PatroniMember) ConfigFile() string { return m.node.data + ".yml" }

// LogFile is where Patroni's messages go; the server's go to the node's.
func (m *PatroniMember) LogFile() string { return m.node.data + ".patroni.log" }

// LogTail gives the last lines of Patroni's messages.
func (m *PatroniMember) LogTail(lines int) string {
	text, err := os.ReadFile(m.LogFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Configure writes the member's configuration file, with settings over the
// lab's own; a running Patroni takes it with Reload, or at its next start.
func (m *PatroniMember) Configure(over map[string]any) error {
	text, err := yaml.Dump(merge(m.settings(), over), yaml.WithIndent(2))
	if err != nil {
		return fmt.Errorf("writing the configuration of Patroni %q: %w", m.node.name, err)
	}
	if err := os.WriteFile(m.ConfigFile(), text, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of Patroni %q: %w", m.node.name, err)
	}
	return m.patroni.cluster.own(m.ConfigFile())
}

// Start starts Patroni, and does not wait for its server.
func (m *PatroniMember) Start(ctx context.Context) error {
	if m.Running() {
		return fmt.Errorf("starting Patroni %q: it is running", m.node.name)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("starting Patroni %q: %w", m.node.name, err)
	}
	messages, err := os.OpenFile(m.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting Patroni %q: %w", m.node.name, err)
	}
	defer func() { _ = messages.Close() }() // the process has its own copy of the descriptor
	cmd := exec.Command("/usr/bin/python3", "-m", "patroni", m.ConfigFile())
	cmd.Dir, cmd.Env = m.patroni.cluster.dir, m.environment()
	cmd.Stdout, cmd.Stderr = messages, messages
	// In order: a killed Patroni leaves its server behind.
	cmd.SysProcAttr = attributes(m.patroni.cluster.user, syscall.SIGTERM)
	process, err := m.patroni.cluster.spawner.spawn(cmd)
	if err != nil {
		return fmt.Errorf("starting Patroni %q: %w", m.node.name, err)
	}
	m.hold(process)
	return nil
}

func (m *PatroniMember) environment() []string {
	var kept []string
	for _, entry := range Environment() {
		if !strings.HasPrefix(entry, "PATRONI_") && !strings.HasPrefix(entry, "PYTHON") && !strings.HasPrefix(entry, "HOME=") {
			kept = append(kept, entry)
		}
	}
	return append(kept, "PYTHONPATH="+m.patroni.library, "PYTHONDONTWRITEBYTECODE=1", "HOME="+m.patroni.cluster.dir)
}

// Stop ends Patroni in order, and it its server.
func (m *PatroniMember) Stop(ctx context.Context) error {
	if err := m.endPatroni(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	return m.killServer(ctx) // where it was paused, or still starting
}

// Restart ends Patroni alone by SIGKILL, its server goes on, and starts it
// again: what an upgrade of the package does. Patroni then takes the server over.
func (m *PatroniMember) Restart(ctx context.Context) error {
	if err := m.endPatroni(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	return m.Start(ctx)
}

// Kill ends Patroni and its server by SIGKILL: the death of the machine.
// Killing what does not run is no error.
func (m *PatroniMember) Kill(ctx context.Context) error {
	if err := m.endPatroni(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	if err := m.killServer(ctx); err != nil {
		return err
	}
	return m.node.removeSegment()
}

// Reload has Patroni read its configuration file again.
func (m *PatroniMember) Reload() error { return m.signal(syscall.SIGHUP) }

// Freeze stops Patroni alone (SIGSTOP): its server goes on, and nobody watches it.
// Thaw lets it go on.
func (m *PatroniMember) Freeze() error { return m.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (m *PatroniMember) Thaw() error { return m.signal(syscall.SIGCONT) }

func (m *PatroniMember) signal(signal syscall.Signal) error {
	p := m.running()
	if p == nil {
		return fmt.Errorf("sending %s to Patroni %q: %w", signal, m.node.name, ErrNotRunning)
	}
	return syscall.Kill(p.pid(), signal)
}

func (m *PatroniMember) endPatroni(ctx context.Context, signal syscall.Signal) error {
	p := m.running()
	if p == nil {
		return nil
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultPatience)
		defer cancel()
	}
	end := func() error { return p.stop(ctx, signal) }
	if signal == syscall.SIGKILL {
		end = func() error { return p.killTree(ctx) }
	}
	if err := end(); err != nil {
		return fmt.Errorf("ending Patroni %q: %w", m.node.name, err)
	}
	return nil
}

// killServer ends the postmaster, which is nobody's child, and its children.
func (m *PatroniMember) killServer(ctx context.Context) error {
	pid, err := m.serverPID()
	if err != nil || pid == 0 {
		return err
	}
	if err := killForeign(ctx, pid); err != nil {
		return fmt.Errorf("killing the server of Patroni %q: %w", m.node.name, err)
	}
	return nil
}

// serverPID is the postmaster's process id, 0 where none runs.
func (m *PatroniMember) serverPID() (int, error) {
	text, err := os.ReadFile(filepath.Join(m.node.data, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the lock file of node %q: %w", m.node.name, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0, nil // it is being written
	}
	// The number may be another's by now.
	command, err := os.ReadFile("/proc/" + line + "/cmdline")
	if err != nil || !strings.Contains(string(command), m.node.data+"\x00") {
		return 0, nil
	}
	return pid, nil
}

// writable reports whether the server takes writes.
func (m *PatroniMember) writable(ctx context.Context) bool {
	var recovering bool
	err := m.node.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&recovering)
	return err == nil && !recovering
}

// follows reports whether the server streams from any other.
func (m *PatroniMember) follows(ctx context.Context) bool {
	var streaming bool
	err := m.node.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')").Scan(&streaming)
	return err == nil && streaming
}

// WaitReady waits until Patroni itself says that its server runs.
func (m *PatroniMember) WaitReady(ctx context.Context) error {
	return poll(ctx, 50*time.Millisecond, fmt.Sprintf("Patroni %q to be ready", m.node.name), func() (bool, error) {
		state, err := m.State(ctx)
		return err == nil && state.State == "running", nil
	})
}
