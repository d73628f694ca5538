package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// ServerUser is the operating system's user who runs the servers when the lab
// itself runs as root, whom PostgreSQL refuses.
const ServerUser = "postgres"

// Options say where and how a lab runs. The zero value is good.
type Options struct {
	Dir      string            // the folder in which the lab makes its own; "" is the system's temporary folder
	BinDir   string            // the folder of initdb and postgres; "" is FindDefaultPG()
	Logger   hclog.Logger      // nil logs nothing
	Fsync    bool              // false is faster; a killed server loses nothing by it, a killed machine would
	Settings map[string]string // settings of every node, over the lab's own
	Keep     bool              // Close stops the servers and leaves the folder
}

// Cluster is a folder with local servers in it.
type Cluster struct {
	dir     string
	bin     string
	major   int // of the servers
	options Options
	log     hclog.Logger
	spawner *spawner
	user    *syscall.Credential // nil: servers run as whoever runs the lab

	mu     sync.Mutex
	nodes  []*Node
	extras []*process
	closed bool
}

// NewCluster makes the lab's folder; it starts no server. The caller must Close it.
func NewCluster(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{bin: options.BinDir, options: options, log: options.Logger}
	if c.log == nil {
		c.log = hclog.NewNullLogger()
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("making a lab: %w", err)
	}
	if c.bin == "" {
		bin, err := FindDefaultPG()
		if err != nil {
			return nil, err
		}
		c.bin = bin
	}
	var err error
	if c.major, err = majorOf(c.bin); err != nil {
		return nil, fmt.Errorf("making a lab: %w", err)
	}
	credential, err := serverCredential()
	if err != nil {
		return nil, err
	}
	c.user = credential
	if c.dir, err = os.MkdirTemp(options.Dir, "slotkeeper-lab-"); err != nil {
		return nil, fmt.Errorf("making the lab's folder: %w", err)
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, fmt.Errorf("making the lab's folder: %w", err)
	}
	if err := c.own(c.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	c.spawner = newSpawner()
	return c, nil
}

// Major is the servers' major version.
func (c *Cluster) Major() int { return c.major }

// decodesMessages: 13's pgoutput passes no logical messages on.
func (c *Cluster) decodesMessages() bool { return c.major >= 14 }

// serverCredential is nil unless the lab runs as root.
func serverCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup(ServerUser)
	if err != nil {
		return nil, fmt.Errorf("looking for the user %q, who runs the servers when the lab runs as root: %w", ServerUser, err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the id of user %q: %w", ServerUser, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the group of user %q: %w", ServerUser, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// own gives a path to the user of the servers.
func (c *Cluster) own(path string) error {
	if c.user == nil {
		return nil
	}
	if err := os.Chown(path, int(c.user.Uid), int(c.user.Gid)); err != nil {
		return fmt.Errorf("giving %s to the user %q: %w", path, ServerUser, err)
	}
	return nil
}

// Dir is the lab's folder.
func (c *Cluster) Dir() string { return c.dir }

// BinDir is the folder of the server's programs.
func (c *Cluster) BinDir() string { return c.bin }

// Nodes gives the nodes in the order in which they were made.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Node(nil), c.nodes...)
}

// NewNode reserves a name, a folder and a port. Init or BaseBackup fills it.
func (c *Cluster) NewNode(name string) (*Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	for _, other := range c.nodes {
		if other.name == name {
			return nil, fmt.Errorf("making node %q: there is one of that name", name)
		}
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	n := &Node{cluster: c, name: name, port: port, data: filepath.Join(c.dir, name), log: c.log.Named(name), settings: map[string]string{}}
	c.nodes = append(c.nodes, n)
	return n, nil
}

// AddPrimary makes a node by initdb and starts it.
func (c *Cluster) AddPrimary(ctx context.Context, name string) (*Node, error) {
	n, err := c.NewNode(name)
	if err != nil {
		return nil, err
	}
	if err := n.Init(ctx); err != nil {
		return nil, err
	}
	return n, n.Start(ctx)
}

// AddStandby makes a node from a base backup of upstream, a primary or a standby
// (then the node cascades), starts it and waits until it streams.
func (c *Cluster) AddStandby(ctx context.Context, name string, upstream *Node, options StandbyOptions) (*Node, error) {
	n, err := c.NewNode(name)
	if err != nil {
		return nil, err
	}
	if err := n.BaseBackup(ctx, upstream, options); err != nil {
		return nil, err
	}
	if err := n.Start(ctx); err != nil {
		return nil, err
	}
	return n, n.WaitStreaming(ctx)
}

// run executes one of the server's programs as the servers' user.
func (c *Cluster) run(ctx context.Context, program string, args ...string) error {
	_, err := c.output(ctx, program, args...)
	return err
}

// output is run that gives what the program printed, in the error when it fails.
func (c *Cluster) output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	cmd.Env = Environment()
	cmd.SysProcAttr = attributes(c.user, syscall.SIGKILL)
	// The whole group: initdb's servers and the other half of pg_basebackup hold
	// the output open, and Wait would wait for them.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := c.spawner.start(cmd); err != nil {
		return "", fmt.Errorf("running %s: %w", program, err)
	}
	if err := cmd.Wait(); err != nil {
		said := strings.TrimSpace(output.String())
		return "", fmt.Errorf("running %s: %w: %s", program, err, said[max(0, len(said)-4000):])
	}
	return output.String(), nil
}

// Environment is the process's own without libpq's and slotkeeper's
// variables, which would lead the programs to other servers, and with messages
// in English.
func Environment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		foreign := slices.ContainsFunc([]string{"PG", "LC_", "LANG", "SLOTKEEPER_"}, func(prefix string) bool {
			return strings.HasPrefix(entry, prefix)
		})
		if !foreign {
			kept = append(kept, entry)
		}
	}
	return append(kept, "LC_ALL=C")
}

// Close stops everything at once (no checkpoints) and removes the folder. It
// may be called more than once.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	nodes, extras := c.nodes, c.extras
	c.mu.Unlock()

	// The caller's context is most likely over already; stopping is bounded by its own.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	errs := make([]error, len(nodes)+len(extras)+1)
	var group sync.WaitGroup
	for i, extra := range extras {
		group.Go(func() { errs[i] = extra.killTree(ctx) })
	}
	for i, node := range nodes {
		group.Go(func() {
			if errs[len(extras)+i] = node.StopImmediate(ctx); errs[len(extras)+i] == nil {
				errs[len(extras)+i] = node.removeSegment()
			}
		})
	}
	group.Wait()
	c.spawner.close()
	if !c.options.Keep {
		errs[len(errs)-1] = os.RemoveAll(c.dir)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the lab in %s: %w", c.dir, err)
	}
	return nil
}
