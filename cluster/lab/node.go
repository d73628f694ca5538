package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
)

// settingsFile is the lab's own configuration file in the data folder; it is
// included by postgresql.conf, and ALTER SYSTEM still goes over it.
const settingsFile = "lab.conf"

// Node is one local server: running, stopped, or not filled yet.
type Node struct {
	cluster *Cluster
	name    string
	port    int
	data    string
	log     hclog.Logger

	mu       sync.Mutex
	settings map[string]string // what this node has beyond baseSettings
	env      []string          // further variables of the server's environment

	held // the postmaster
}

// Name is the node's name; as application_name it is also how its upstream knows it.
func (n *Node) Name() string { return n.name }

// Port is the TCP port on 127.0.0.1.
func (n *Node) Port() int { return n.port }

// DataDir is the data folder.
func (n *Node) DataDir() string { return n.data }

// LogFile is where the server's messages go.
func (n *Node) LogFile() string { return n.data + ".log" }

// SlotName is the physical slot on its upstream through which the node streams.
func (n *Node) SlotName() string {
	return "lab_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(n.name))
}

// Conninfo is libpq's connection string for a database and a user; "" stands
// for postgres in both.
func (n *Node) Conninfo(dbname, user string) string {
	if dbname == "" {
		dbname = "postgres"
	}
	if user == "" {
		user = "postgres"
	}
	return fmt.Sprintf("host=127.0.0.1 port=%d dbname=%s user=%s sslmode=disable", n.port, quoteConninfo(dbname), quoteConninfo(user))
}

// quoteConninfo quotes a value for a connection string.
func quoteConninfo(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// Init fills the data folder by initdb: role postgres, UTF-8, locale C, everyone
// trusted on loopback.
func (n *Node) Init(ctx context.Context) error {
	err := n.cluster.run(ctx, "initdb", "--pgdata="+n.data, "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return fmt.Errorf("making node %q: %w", n.name, err)
	}
	if err := n.append("postgresql.conf", "\ninclude '"+settingsFile+"'\n"); err != nil {
		return err
	}
	return n.writeSettings()
}

// baseSettings are small enough for several servers on a small machine, and
// busy enough that checkpoints and vacuum happen within a test.
func (n *Node) baseSettings() map[string]string {
	fsync := "off"
	if n.cluster.options.Fsync {
		fsync = "on"
	}
	settings := map[string]string{
		"listen_addresses":            "127.0.0.1",
		"port":                        strconv.Itoa(n.port),
		"unix_socket_directories":     n.cluster.dir,
		"fsync":                       fsync,
		"wal_level":                   "logical",
		"max_wal_senders":             "20",
		"max_replication_slots":       "20",
		"hot_standby":                 "on",
		"wal_log_hints":               "on", // pg_rewind wants it
		"max_connections":             "60",
		"max_prepared_transactions":   "10",
		"shared_buffers":              "32MB",
		"max_wal_size":                "256MB",
		"min_wal_size":                "64MB",
		"checkpoint_timeout":          "30s",
		"autovacuum_naptime":          "5s",
		"autovacuum_max_workers":      "2",
		"max_worker_processes":        "4",
		"dynamic_shared_memory_type":  "mmap", // in the data folder: a killed server leaves nothing in /dev/shm
		"jit":                         "off",
		"wal_receiver_timeout":        "10s",
		"wal_sender_timeout":          "10s",
		"wal_retrieve_retry_interval": "100ms",
		"log_line_prefix":             "%m [%p] %q%u@%d ",
		"log_checkpoints":             "on",
		"log_timezone":                "UTC",
		"timezone":                    "UTC",
	}
	// A socket's path has room for 107 bytes; TCP serves everybody here anyway.
	if len(n.cluster.dir) > 80 {
		settings["unix_socket_directories"] = ""
	}
	return settings
}

// Set changes settings of this node; a running server reads them at once, as
// far as they need no restart. An empty value takes the lab's own again.
func (n *Node) Set(ctx context.Context, settings map[string]string) error {
	n.mu.Lock()
	for name, value := range settings {
		n.settings[name] = value
		if value == "" {
			delete(n.settings, name)
		}
	}
	n.mu.Unlock()
	if err := n.writeSettings(); err != nil {
		return err
	}
	if !n.Running() {
		return nil
	}
	return n.Reload(ctx)
}

// Reload makes the server read its configuration files. It does not wait until
// every process of it has. It is a signal, for a query on a standby that replays
// may be cancelled.
func (n *Node) Reload(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reloading node %q: %w", n.name, err)
	}
	server := n.running()
	if server == nil {
		return fmt.Errorf("reloading node %q: %w", n.name, ErrNotRunning)
	}
	if err := server.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("reloading node %q: %w", n.name, err)
	}
	return nil
}

func (n *Node) writeSettings() error {
	merged := n.baseSettings()
	n.mu.Lock()
	for _, layer := range []map[string]string{n.cluster.options.Settings, n.settings} {
		for name, value := range layer {
			merged[name] = value
		}
	}
	n.mu.Unlock()
	names := make([]string, 0, len(merged))
	for name := range merged {
		names = append(names, name)
	}
	sort.Strings(names)
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(merged[name], "'", "''"))
	}
	return n.write(settingsFile, text.String())
}

// write puts a file into the data folder, whole or not at all.
func (n *Node) write(name, text string) error {
	path := filepath.Join(n.data, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing %s of node %q: %w", name, n.name, err)
	}
	if err := n.cluster.own(path + ".new"); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s of node %q: %w", name, n.name, err)
	}
	return nil
}

func (n *Node) append(name, text string) error {
	old, err := os.ReadFile(filepath.Join(n.data, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s of node %q: %w", name, n.name, err)
	}
	return n.write(name, string(old)+text)
}

// Env gives the server further variables, "NAME=value", from its next start on.
func (n *Node) Env(variables ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.env = append(n.env, variables...)
}

// LogTail gives the last lines of the server's messages.
func (n *Node) LogTail(lines int) string {
	text, err := os.ReadFile(n.LogFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
