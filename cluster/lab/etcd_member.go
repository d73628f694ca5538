package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// EtcdMember is one process of an Etcd, running or not.
type EtcdMember struct {
	etcd   *Etcd
	name   string
	client string // host:port for clients
	peer   string // host:port for the link only
	link   *Link  // through which the other members come

	held // the process
}

func (e *Etcd) newMember(name string) (*EtcdMember, error) {
	m := &EtcdMember{etcd: e, name: name}
	var link string
	for _, addr := range []*string{&m.client, &m.peer, &link} {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		*addr = "127.0.0.1:" + strconv.Itoa(port)
	}
	var err error
	m.link, err = newLink(m.peer, link, e.whoDials)
	return m, err
}

// Name is the member's name.
func (m *EtcdMember) Name() string { return m.name }

// URL is where clients reach it.
func (m *EtcdMember) URL() string { return m.etcd.scheme() + m.client }

// Addr is its clients' host:port, to put a Link before it.
func (m *EtcdMember) Addr() string { return m.client }

func (m *EtcdMember) peerURL() string { return m.etcd.scheme() + m.link.Addr() }

func (m *EtcdMember) data() string { return filepath.Join(m.etcd.dir, m.name) }

func (m *EtcdMember) logFile() string { return m.data() + ".log" }

// Start starts the member and does not wait: alone it may have nobody to agree
// with. Etcd.WaitHealthy waits.
func (m *EtcdMember) Start() error {
	if m.Running() {
		return fmt.Errorf("starting etcd's member %s: it is running", m.name)
	}
	messages, err := os.OpenFile(m.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("starting etcd's member %s: %w", m.name, err)
	}
	defer func() { _ = messages.Close() }() // the process has its own copy of the descriptor
	cmd := exec.Command("etcd", m.args()...)
	cmd.Dir, cmd.Env = m.etcd.dir, Environment()
	cmd.Stdout, cmd.Stderr = messages, messages
	cmd.SysProcAttr = attributes(nil, syscall.SIGKILL)
	process, err := m.etcd.spawner.spawn(cmd)
	if err != nil {
		return fmt.Errorf("starting etcd (is Debian's etcd-server installed?): %w", err)
	}
	m.hold(process)
	return nil
}

func (m *EtcdMember) args() []string {
	e := m.etcd
	args := []string{
		"--name", m.name, "--data-dir", m.data(), "--logger", "zap", "--log-level", "warn",
		"--listen-client-urls", m.URL(), "--advertise-client-urls", m.URL(),
		"--listen-peer-urls", e.scheme() + m.peer, "--initial-advertise-peer-urls", m.peerURL(),
		"--initial-cluster", e.initialCluster(), "--enable-v2=false",
	}
	if a := e.authority; a != nil {
		args = append(args, "--cert-file", a.File("server.pem"), "--key-file", a.File("server.key"),
			"--peer-cert-file", a.File("server.pem"), "--peer-key-file", a.File("server.key"),
			"--peer-trusted-ca-file", a.File("ca.pem"), "--peer-client-cert-auth")
	}
	if e.options.ClientCerts {
		args = append(args, "--client-cert-auth", "--trusted-ca-file", e.File("ca.pem"))
	}
	if e.options.Users {
		args = append(args, "--bcrypt-cost", "4") // the least: every client of a test logs in
	}
	if e.options.TokenTTL != 0 {
		args = append(args, "--auth-token", "simple", "--auth-token-ttl", strconv.Itoa(int(e.options.TokenTTL/time.Second)))
	}
	if e.options.Quota != 0 {
		args = append(args, "--quota-backend-bytes", strconv.FormatInt(e.options.Quota, 10))
	}
	return append(args, e.options.Args...)
}

// Stop ends the member in order, by SIGTERM. Stopping a stopped one is no error.
func (m *EtcdMember) Stop(ctx context.Context) error { return m.end(ctx, syscall.SIGTERM) }

// Kill ends it by SIGKILL.
func (m *EtcdMember) Kill(ctx context.Context) error { return m.end(ctx, syscall.SIGKILL) }

func (m *EtcdMember) end(ctx context.Context, signal syscall.Signal) error {
	p := m.running()
	if p == nil {
		return nil
	}
	if err := m.Thaw(); err != nil { // a frozen one hears nothing but this
		return err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultPatience)
		defer cancel()
	}
	if err := p.stop(ctx, signal); err != nil {
		return fmt.Errorf("ending etcd's member %s: %w", m.name, err)
	}
	return nil
}

// Freeze stops the process (SIGSTOP): to others it is a machine that does not
// answer. Thaw lets it go on.
func (m *EtcdMember) Freeze() error { return m.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (m *EtcdMember) Thaw() error { return m.signal(syscall.SIGCONT) }

func (m *EtcdMember) signal(signal syscall.Signal) error {
	p := m.running()
	if p == nil {
		return fmt.Errorf("sending %s to etcd's member %s: %w", signal, m.name, ErrNotRunning)
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to etcd's member %s: %w", signal, m.name, err)
	}
	return nil
}

// Isolate cuts the member off from all others. Its clients still reach it.
func (m *EtcdMember) Isolate() { m.toOthers((*Link).cutFrom) }

// Rejoin undoes Isolate.
func (m *EtcdMember) Rejoin() { m.toOthers((*Link).healFrom) }

func (m *EtcdMember) toOthers(do func(l *Link, name string)) {
	for _, other := range m.etcd.members {
		if other != m {
			do(other.link, m.name)
			do(m.link, other.name)
		}
	}
}

// LogTail gives the last lines of the member's messages.
func (m *EtcdMember) LogTail(lines int) string {
	text, err := os.ReadFile(m.logFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
