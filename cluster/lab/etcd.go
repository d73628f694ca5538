package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// EtcdOptions say what kind of etcd is started. The zero value is three plain
// members.
type EtcdOptions struct {
	Dir     string // the folder in which it makes its own; "" is the system's temporary folder
	Members int    // 0 is three
	TLS     bool   // https for clients and peers, by an authority of its own
	// ClientCerts has clients show a certificate of that authority, such as
	// client.pem with client.key.
	ClientCerts bool
	Users       bool          // root, EtcdUser, which may do anything under /slotkeeper/, and PatroniUser, under /service/
	TokenTTL    time.Duration // of users' tokens, in whole seconds; 0 is etcd's five minutes
	Quota       int64         // bytes of the database; 0 is etcd's own 2 GiB
	Args        []string      // further arguments of each member
}

// The users of an etcd that has some, beside root.
const (
	EtcdUser    = "slotkeeper"
	PatroniUser = "patroni"
)

// Etcd is an etcd cluster of real processes in a folder of its own. Peers speak
// to each other through links, so that a member can be cut off from the others
// while its clients still reach it.
type Etcd struct {
	options   EtcdOptions
	dir       string
	authority *Authority // nil without TLS
	spawner   *spawner
	members   []*EtcdMember

	mu    sync.Mutex
	users bool // they are asked for
	close sync.Once
}

// StartEtcd starts the members and returns when they take requests. It wants
// the program etcd, 3.4 or later. End it with Close.
func StartEtcd(ctx context.Context, options EtcdOptions) (*Etcd, error) {
	if options.Members == 0 {
		options.Members = 3
	}
	dir, err := os.MkdirTemp(options.Dir, "slotkeeper-etcd-")
	if err != nil {
		return nil, fmt.Errorf("making etcd's folder: %w", err)
	}
	e := &Etcd{options: options, dir: dir, spawner: newSpawner()}
	if err := e.make(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Etcd) make(ctx context.Context) error {
	if e.options.TLS {
		var err error
		if e.authority, err = NewAuthority(e.dir); err != nil {
			return err
		}
		for _, name := range []string{"server", "client"} {
			if err := e.authority.Issue(name); err != nil {
				return err
			}
		}
	}
	for user, password := range etcdPasswords {
		if err := os.WriteFile(e.PasswordFile(user), []byte(password+"\n"), 0o600); err != nil {
			return fmt.Errorf("writing the password of etcd's user %s: %w", user, err)
		}
	}
	for i := range e.options.Members {
		m, err := e.newMember(fmt.Sprintf("m%d", i+1))
		if err != nil {
			return err
		}
		e.members = append(e.members, m)
	}
	if err := e.StartAll(ctx); err != nil {
		return err
	}
	return e.makeUsers(ctx)
}

// Members gives the members, running or not.
func (e *Etcd) Members() []*EtcdMember { return e.members }

// Endpoints gives the clients' URLs of all members.
func (e *Etcd) Endpoints() []string {
	urls := make([]string, 0, len(e.members))
	for _, m := range e.members {
		urls = append(urls, m.URL())
	}
	return urls
}

// File is the path of one of the authority's files: ca.pem, client.pem, client.key.
func (e *Etcd) File(name string) string { return filepath.Join(e.dir, name) }

// PasswordFile holds the password of a user.
func (e *Etcd) PasswordFile(user string) string { return e.File(user + ".password") }

// Section is the etcd section of slotkeeper's configuration that leads to these
// endpoints, or to all where none is given. more are further settings in it,
// such as "lease_ttl: 2s".
func (e *Etcd) Section(endpoints []string, more ...string) string {
	if len(endpoints) == 0 {
		endpoints = e.Endpoints()
	}
	settings := append([]string{"endpoints: ['" + strings.Join(endpoints, "', '") + "']"}, more...)
	if e.options.TLS {
		settings = append(settings, "ca_file: "+e.File("ca.pem"))
	}
	if e.options.ClientCerts {
		settings = append(settings, "cert_file: "+e.File("client.pem"), "key_file: "+e.File("client.key"))
	}
	if e.options.Users {
		settings = append(settings, "username: "+EtcdUser, "password_file: "+e.PasswordFile(EtcdUser))
	}
	return "etcd:\n  " + strings.Join(settings, "\n  ") + "\n"
}

// StartAll starts every member that is not running and waits until each of them
// takes requests.
func (e *Etcd) StartAll(ctx context.Context) error {
	for _, m := range e.members {
		if m.Running() {
			continue
		}
		if err := m.Start(); err != nil {
			return err
		}
	}
	return e.WaitHealthy(ctx)
}

// StopAll ends every member in order, by SIGTERM.
func (e *Etcd) StopAll(ctx context.Context) error {
	return e.each(func(m *EtcdMember) error { return m.Stop(ctx) })
}

// KillAll ends every member by SIGKILL.
func (e *Etcd) KillAll(ctx context.Context) error {
	return e.each(func(m *EtcdMember) error { return m.Kill(ctx) })
}

func (e *Etcd) each(do func(*EtcdMember) error) error {
	errs := make([]error, len(e.members))
	var group sync.WaitGroup
	for i, m := range e.members {
		group.Go(func() { errs[i] = do(m) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Wipe makes it another, empty etcd at the same addresses: all members are
// killed, their data removed, and new ones started, with users as before.
func (e *Etcd) Wipe(ctx context.Context) error {
	if err := e.emptied(ctx); err != nil {
		return err
	}
	e.setUsers(false)
	if err := e.StartAll(ctx); err != nil {
		return err
	}
	return e.makeUsers(ctx)
}

// Restore kills all members and starts them with what a snapshot holds, its
// users included.
func (e *Etcd) Restore(ctx context.Context, file string) error {
	if err := e.emptied(ctx); err != nil {
		return err
	}
	for _, m := range e.members {
		cmd := exec.CommandContext(ctx, "etcdctl", "snapshot", "restore", file,
			"--name", m.name, "--data-dir", m.data(), "--initial-cluster", e.initialCluster(),
			"--initial-advertise-peer-urls", m.peerURL())
		cmd.Env = append(Environment(), "ETCDCTL_API=3")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("restoring etcd's member %s: %w: %s", m.name, err, text)
		}
	}
	return e.StartAll(ctx)
}

func (e *Etcd) emptied(ctx context.Context) error {
	if err := e.KillAll(ctx); err != nil {
		return err
	}
	return e.each(func(m *EtcdMember) error { return os.RemoveAll(m.data()) })
}

// Close kills the members and removes the folder. It may be called more than once.
func (e *Etcd) Close() error {
	var err error
	e.close.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err = e.KillAll(ctx)
		for _, m := range e.members {
			m.link.Close()
		}
		e.spawner.close()
		err = errors.Join(err, os.RemoveAll(e.dir))
	})
	return err
}

func (e *Etcd) initialCluster() string {
	all := make([]string, 0, len(e.members))
	for _, m := range e.members {
		all = append(all, m.name+"="+m.peerURL())
	}
	return strings.Join(all, ",")
}

func (e *Etcd) scheme() string {
	if e.options.TLS {
		return "https://"
	}
	return "http://"
}

// whoDials finds the member that has the other end of a connection.
func (e *Etcd) whoDials(conn net.Conn) string {
	for _, m := range e.members {
		if pid := m.PID(); pid != 0 && holdsDiallingEnd(pid, conn) {
			return m.name
		}
	}
	return ""
}
