package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Patience bounds every wait of a test that has no tighter limit of its own. It
// is no measure of speed: it only turns a hang into a failure.
const Patience = 90 * time.Second

// Scene is one test's cluster. A is the primary; the others, as many as the test
// wants, stand by. A test that promotes one lets A name it from then on.
type Scene struct {
	T                *testing.T
	Ctx              context.Context
	Lab              *lab.Cluster
	A, B, C, D, E, F *lab.Node
	Daemon           *lab.Daemon
	links            map[string]*lab.Link // by which the controller reaches a node, where not directly
}

// Options say what stands on the scene.
type Options struct {
	Major    int                 // of the servers; 0: that of all tests
	Standbys int                 // 0 is one, at most five
	Settings map[string]string   // of every node
	OnB      lab.StandbyOptions  // of the first standby
	OnC      *lab.StandbyOptions // of the second; nil: as B, like all further ones
	Cascade  bool                // the second standby streams from the first
	Lasts    time.Duration       // how long the scene may last at most; 0 is ten minutes
}

// Bare has a lab with no server in it, for clusters that something else starts.
func Bare(t *testing.T, ctx context.Context, major int, settings map[string]string) *Scene {
	t.Helper()
	l, err := lab.NewCluster(ctx, lab.Options{BinDir: binDir(t, major), Settings: settings})
	s := &Scene{T: t, Ctx: ctx, Lab: l}
	s.OK(err)
	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
		if err := l.Close(); err != nil {
			t.Errorf("closing the lab: %v", err)
		}
	})
	return s
}

// New starts the primary and its standbys, with the extension and the
// controller's role, and no controller.
func New(t *testing.T, o Options) *Scene {
	t.Helper()
	if o.Lasts == 0 {
		o.Lasts = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), o.Lasts)
	t.Cleanup(cancel)
	s := Bare(t, ctx, o.Major, o.Settings)
	l := s.Lab
	var err error
	s.A, err = l.AddPrimary(ctx, "a")
	s.OK(err)
	s.OK(lab.SetupRole(ctx, s.A))
	for i, place := range s.standbys()[:max(o.Standbys, 1)] {
		options := o.OnB
		if i == 1 && o.OnC != nil {
			options = *o.OnC
		}
		upstream := s.A
		if i == 1 && o.Cascade {
			upstream = s.B
		}
		*place, err = l.AddStandby(ctx, string(rune('b'+i)), upstream, options)
		s.OK(err)
	}
	return s
}

// Mirrored is New with a table t, a slot cdc, and the controller at work until
// the slot is SAFE on every standby: where most cases begin.
func Mirrored(t *testing.T, o Options) *Scene {
	t.Helper()
	s := New(t, o)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})
	return s
}

// Nodes gives the nodes of the scene, the primary first.
func (s *Scene) Nodes() []*lab.Node {
	nodes := []*lab.Node{s.A}
	for _, n := range s.standbys() {
		if *n != nil {
			nodes = append(nodes, *n)
		}
	}
	return nodes
}

func (s *Scene) standbys() []**lab.Node { return []**lab.Node{&s.B, &s.C, &s.D, &s.E, &s.F} }

// OK ends the test on an error.
func (s *Scene) OK(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Exec runs SQL on a node as its superuser.
func (s *Scene) Exec(n *lab.Node, sql string) {
	s.T.Helper()
	s.OK(n.Exec(s.Ctx, sql))
}

// Text asks a node for one text value; "" for NULL.
func (s *Scene) Text(n *lab.Node, sql string) string {
	s.T.Helper()
	var v *string
	s.OK(n.QueryRow(s.Ctx, "SELECT ("+sql+")::text").Scan(&v))
	if v == nil {
		return ""
	}
	return *v
}

// Rows gives the one text column of a query on a node.
func (s *Scene) Rows(n *lab.Node, sql string) []string {
	s.T.Helper()
	rows, err := n.DB("").Strings(s.Ctx, sql)
	s.OK(err)
	return rows
}

// Run starts the controller over all nodes of the scene. more are further
// lines of its configuration file.
func (s *Scene) Run(more ...string) {
	s.T.Helper()
	s.RunWith(lab.DaemonOptions{More: strings.Join(more, "\n")})
}

// Link puts a network in front of a node through which only the controller
// reaches it, from its next start on.
func (s *Scene) Link(n *lab.Node) *lab.Link {
	s.T.Helper()
	link, err := lab.NewLink(net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port())))
	s.OK(err)
	s.T.Cleanup(link.Close)
	if s.links == nil {
		s.links = map[string]*lab.Link{}
	}
	s.links[n.Name()] = link
	return link
}

// StopDaemon ends the controller by SIGTERM; its mirrors stay.
func (s *Scene) StopDaemon() {
	s.T.Helper()
	s.OK(s.Daemon.Stop(s.Ctx))
	s.Daemon = nil
}

// Wait asks a condition again and again until it holds.
func (s *Scene) Wait(what string, condition func() (bool, string)) {
	s.T.Helper()
	deadline := time.Now().Add(Patience)
	last := ""
	for {
		done, why := condition()
		if done {
			return
		}
		last = why
		if time.Now().After(deadline) {
			s.T.Fatalf("waiting for %s: %s", what, last)
		}
		select {
		case <-s.Ctx.Done():
			s.T.Fatalf("waiting for %s: %s (%v)", what, last, s.Ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Status is the daemon's last document; false where it does not answer.
func (s *Scene) Status() (status.Status, bool) {
	doc, err := StatusOf(s.Ctx, s.Daemon)
	return doc, err == nil
}

// StatusOf is what a daemon tells now, the whole of it.
func StatusOf(ctx context.Context, d *lab.Daemon) (status.Status, error) {
	doc, err := d.Status(ctx)
	if err != nil {
		return status.Status{}, err
	}
	return whole(doc)
}

func whole(doc lab.Document) (status.Status, error) {
	var all status.Status
	err := json.Unmarshal(doc.Raw, &all)
	return all, err
}

// Safe waits until an observation begun after now shows the slots SAFE on all
// of the given nodes (none given: all standbys), and gives it.
func (s *Scene) Safe(slots []string, on ...*lab.Node) status.Status {
	s.T.Helper()
	if len(on) == 0 {
		on = s.Nodes()[1:]
	}
	names := make([]string, 0, len(on))
	for _, n := range on {
		names = append(names, n.Name())
	}
	ctx, cancel := context.WithTimeout(s.Ctx, Patience)
	defer cancel()
	doc, err := s.Daemon.WaitSafe(ctx, slots, names, nil)
	s.OK(err)
	all, err := whole(doc)
	s.OK(err)
	return all
}

// Pair finds the verdict of one slot on one standby in a document.
func Pair(doc status.Status, slot, standby string) (status.Standby, bool) {
	for _, row := range doc.Slots {
		if row.Name != slot {
			continue
		}
		for _, p := range row.Standbys {
			if p.Node == standby {
				return p, true
			}
		}
	}
	return status.Standby{}, false
}

// Verdict waits until an observation begun after now gives the pair this
// verdict and reason, and gives the pair's row.
func (s *Scene) Verdict(slot string, on *lab.Node, state plan.State, reason plan.Reason) status.Standby {
	s.T.Helper()
	began := time.Now()
	var found status.Standby
	s.Wait(fmt.Sprintf("slot %s on %s to be %s %s", slot, on.Name(), state, reason), func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		p, ok := Pair(doc, slot, on.Name())
		if !ok {
			return false, "the controller does not show it"
		}
		found = p
		return p.Verdict == state && p.Reason == reason && doc.ObservedAt.After(began),
			fmt.Sprintf("it is %s %s: %s", p.Verdict, p.Reason, p.Message)
	})
	return found
}

// Condition waits until a document shows a condition of this code, and gives it.
func (s *Scene) Condition(code string) status.Finding {
	s.T.Helper()
	var found status.Finding
	s.Wait("condition "+code, func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		var codes []string
		for _, f := range doc.Conditions {
			if f.Code == code {
				found = f
				return true, ""
			}
			codes = append(codes, f.Code)
		}
		return false, "it shows " + strings.Join(codes, ", ")
	})
	return found
}

// Result is what a command of slotkeeper gave.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Slotkeeper runs the command line with the daemon's configuration.
func (s *Scene) Slotkeeper(args ...string) Result {
	s.T.Helper()
	return Command(s.T, s.Ctx, append(args, "--config", s.Daemon.Config())...)
}

// Command runs the command line as it is given.
func Command(t *testing.T, ctx context.Context, args ...string) Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, Binary(t), args...)
	cmd.Env = lab.Environment()
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running slotkeeper %s: %v", strings.Join(args, " "), err)
	}
	return Result{Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: errs.String()}
}

// FreezeDaemon stops the controller's process (SIGSTOP) until Thaw: it does
// nothing and knows nothing of the time that passes.
func (s *Scene) FreezeDaemon() { s.signalDaemon(syscall.SIGSTOP) }

// ThawDaemon lets it go on.
func (s *Scene) ThawDaemon() { s.signalDaemon(syscall.SIGCONT) }

func (s *Scene) signalDaemon(sig syscall.Signal) {
	s.T.Helper()
	s.OK(s.Daemon.Signal(sig))
}

// explain shows the ends of the logs of a failed test.
func (s *Scene) explain() {
	if s.Daemon != nil {
		s.T.Logf("controller:\n%s", s.Daemon.LogTail(40))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // the test's own is over
		defer cancel()
		if doc, err := StatusOf(ctx, s.Daemon); err == nil {
			for _, row := range doc.Slots {
				for _, p := range row.Standbys {
					s.T.Logf("status: %s on %s: %s %s: %s", row.Name, p.Node, p.Verdict, p.Reason, p.Message)
				}
			}
			for _, f := range doc.Conditions {
				s.T.Logf("status: condition %s %s: %s", f.Code, f.Subject, f.Message)
			}
		}
	}
	for _, n := range s.Lab.Nodes() {
		s.T.Logf("node %s:\n%s", n.Name(), n.LogTail(15))
	}
}

var build struct {
	once sync.Once
	path string
	err  error
}

// Binary builds the program once per test process and gives its path.
func Binary(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		var root string
		if root, build.err = moduleRoot(); build.err != nil {
			return
		}
		build.path = filepath.Join(root, "bin", fmt.Sprintf("slotkeeper-test-%d", os.Getpid()))
		cmd := exec.Command("go", "build", "-o", build.path, "./cmd/slotkeeper")
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("building slotkeeper: %w\n%s", err, text)
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// moduleRoot is the folder of the source.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module's folder: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Main runs a package's tests and removes what Binary built.
func Main(m *testing.M) {
	code := m.Run()
	if build.path != "" {
		_ = os.Remove(build.path) // a leftover in the ignored bin folder harms nobody
	}
	os.Exit(code)
}
