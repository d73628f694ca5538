package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long a daemon may take to end after SIGTERM: its contract.
const stopWithin = 5 * time.Second

// DaemonOptions say how the controller is run.
type DaemonOptions struct {
	Binary   string        // the program slotkeeper
	Interval time.Duration // sync.interval; 0 is one second
	Members  []*Node
	Links    map[string]*Link // by which the controller reaches a node, by its name, where not directly
	Name     string           // of the controller and of its folder; "" is lab
	Etcd     string           // the etcd section of the configuration; "" is Patroni's, or an embedded one of its own
	Args     []string         // further arguments of `run`
	Env      []string         // further variables of its environment, "NAME=value"
	Patroni  *Patroni         // where the members come from; nil: Members
	More     string           // further lines of the configuration file, such as a slots section
}

// Daemon is `slotkeeper run` as a process of its own, with a folder in the lab's
// for its configuration and, where it has no other, its embedded etcd.
type Daemon struct {
	cluster *Cluster
	process *process
	config  string
	log     string
	url     string
	client  *http.Client
}

// StartDaemon writes a configuration and starts the controller with it. It does
// not wait until it is up; WaitSafe does.
func (c *Cluster) StartDaemon(options DaemonOptions) (*Daemon, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	if options.Name == "" {
		options.Name = "lab"
	}
	folder := filepath.Join(c.dir, "controller-"+options.Name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the controller's folder: %w", err)
	}
	d := &Daemon{
		cluster: c, config: filepath.Join(folder, "slotkeeper.yaml"), log: filepath.Join(folder, "log"),
		url:    fmt.Sprintf("http://127.0.0.1:%d/status", port),
		client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}},
	}
	if err := os.WriteFile(d.config, []byte(daemonConfig(options, port)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the controller's configuration: %w", err)
	}
	messages, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	defer func() { _ = messages.Close() }() // the process has its own copy of the descriptor
	cmd := exec.Command(options.Binary, append([]string{"run", "--config", d.config}, options.Args...)...)
	cmd.Dir, cmd.Env = folder, append(Environment(), options.Env...)
	cmd.Stdout, cmd.Stderr = messages, messages
	cmd.SysProcAttr = attributes(nil, syscall.SIGKILL)
	if d.process, err = c.spawner.spawn(cmd); err != nil {
		return nil, fmt.Errorf("starting the controller %s: %w", options.Binary, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extras = append(c.extras, d.process)
	return d, nil
}

func daemonConfig(options DaemonOptions, port int) string {
	interval := options.Interval
	if interval == 0 {
		interval = time.Second
	}
	var text strings.Builder
	if options.Patroni != nil {
		options.Members = nil
		if options.Etcd == "" {
			options.Etcd = options.Patroni.etcd.Section(nil)
		}
		fmt.Fprintf(&text, "scope: %s\nname: %s\ncluster: {source: patroni}\n", options.Patroni.options.Scope, options.Name)
	} else {
		fmt.Fprintf(&text, "scope: lab\nname: %s\ncluster:\n  source: static\n  members:\n", options.Name)
	}
	for _, member := range options.Members {
		port := strconv.Itoa(member.port)
		if link := options.Links[member.name]; link != nil {
			_, port, _ = net.SplitHostPort(link.Addr()) // a listener's own address is one
		}
		fmt.Fprintf(&text, "    - {name: %s, conninfo: \"host=127.0.0.1 port=%s\"}\n", member.name, port)
	}
	if options.Etcd == "" {
		options.Etcd = "etcd: {data_dir: ./etcd}\n"
	}
	fmt.Fprintf(&text, "%spostgres: {user: %s, dbname: postgres, sslmode: disable}\n", options.Etcd, RoleName)
	fmt.Fprintf(&text, "sync: {interval: %s}\nhttp: {listen: \"127.0.0.1:%d\"}\n", interval, port)
	text.WriteString(options.More)
	return text.String()
}

// Config is the configuration file, for other commands of slotkeeper.
func (d *Daemon) Config() string { return d.config }

// URL is where the daemon's listener is.
func (d *Daemon) URL() string { return strings.TrimSuffix(d.url, "/status") }

// LogTail gives the last lines of the daemon's log.
func (d *Daemon) LogTail(lines int) string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Exited is closed when the daemon has ended.
func (d *Daemon) Exited() <-chan struct{} { return d.process.exited }

// Status asks the daemon.
func (d *Daemon) Status(ctx context.Context) (Document, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, http.NoBody)
	if err != nil {
		return Document{}, fmt.Errorf("asking the controller: %w", err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return Document{}, fmt.Errorf("asking the controller: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read whole, or is of no use
	if response.StatusCode != http.StatusOK {
		return Document{}, fmt.Errorf("asking the controller: %s answers %s", d.url, response.Status)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return Document{}, fmt.Errorf("reading the controller's status: %w", err)
	}
	return readDocument(raw)
}

// WaitSafe waits until an observation begun after now, of a primary and of each
// of the standbys, shows each slot SAFE on each of them, and gives it; other
// members may be dead. The error says what was not. seen is shown every document
// on the way; it may be nil.
func (d *Daemon) WaitSafe(ctx context.Context, slots, standbys []string, seen func(Document)) (Document, error) {
	began := time.Now()
	var last Document
	missing := "the controller has not answered yet"
	err := poll(ctx, 10*time.Millisecond, "slots to be SAFE", func() (bool, error) {
		select {
		case <-d.Exited():
			return false, fmt.Errorf("the controller ended (%w); its last messages:\n%s", exitError(d.process.err), d.LogTail(10))
		default:
		}
		document, err := d.Status(ctx)
		if ctx.Err() != nil {
			return false, nil // what was missing before says more
		}
		if err != nil {
			missing = err.Error()
			return false, nil
		}
		last = document
		if seen != nil {
			seen(document)
		}
		missing = document.notSafe(slots, standbys)
		return missing == "" && document.ObservedAt.After(began), nil
	})
	if err != nil {
		return last, fmt.Errorf("%w: %s", err, missing)
	}
	return last, nil
}

// exitError makes an end without an error one all the same.
func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Signal sends a signal to the daemon's process, such as SIGSTOP and SIGCONT.
func (d *Daemon) Signal(sig syscall.Signal) error {
	if err := syscall.Kill(d.process.pid(), sig); err != nil {
		return fmt.Errorf("sending %s to the controller: %w", sig, err)
	}
	return nil
}

// Stop ends the daemon by SIGTERM, as an operator would. One that takes longer
// than its contract allows, or ends with a failure, is an error.
func (d *Daemon) Stop(ctx context.Context) error {
	defer d.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if err := d.process.stop(ctx, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the controller: %w", err)
	}
	if d.process.err != nil {
		return fmt.Errorf("stopping the controller: it ended with %w; its last messages:\n%s", d.process.err, d.LogTail(10))
	}
	return nil
}
