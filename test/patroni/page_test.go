//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// block is a piece of the page that is run: once, or on each node.
type block struct{ kind, text string }

var fence = regexp.MustCompile("(?ms)^```sh (values|once|node)\n(.*?)^```$")

// blocks are the page's commands, in order.
func blocks(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../../deploy/patroni/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, found := range fence.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{found[1], found[2]})
	}
	if fences := strings.Count(string(text), "\n```sh"); fences != len(all) || len(all) < 5 || all[0].kind != "values" {
		t.Fatalf("of %d blocks the page has %d that can be run", fences, len(all))
	}
	return all
}

// site is where the page is followed: a folder for each node's own paths, and
// systemctl and patronictl before all others.
type site struct {
	*scene
	dir      string
	values   map[string]map[string]string // per node
	services map[string]*service
}

// service is what systemctl has started.
type service struct {
	process *exec.Cmd
	log     string
	socket  *harness.Notified
}

// The page is followed to the letter on a cluster that knows nothing of slotkeeper:
// then all is SAFE, and the gate is asked at the next death of the leader.
func TestPageBesideAnExistingCluster(t *testing.T) {
	t.Parallel()
	s := existing(t)
	all := blocks(t)
	var names []string
	for line := range strings.Lines(all[0].text) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "export "), "="); ok {
			names = append(names, name)
		}
	}
	for _, m := range s.p.Members() {
		s.values[m.Name()] = s.valuesOf(m, names)
	}
	first := s.p.Members()[0].Name()
	for _, b := range all[1:] {
		switch b.kind {
		case "once":
			s.shell(first, b.text)
		case "node":
			for _, m := range s.p.Members() {
				s.shell(m.Name(), b.text)
			}
		}
	}
	status := s.shell(first, `"$BIN/slotkeeper" status -o tsv --config "$ETC/slotkeeper.yaml"`)
	if got := strings.Count(status, "\tSAFE\t"); got != 2 {
		t.Errorf("%d pairs are SAFE, want 2:\n%s", got, status)
	}
	f := s.failover()
	if len(f.answers) != 1 || !strings.Contains(f.answers[0], "allow: "+f.leader.Name()+" can serve 1 slot") {
		t.Errorf("%+v", f)
	}
	if r := s.shell(f.leader.Name(), `"$BIN/slotkeeper" verify --config "$ETC/slotkeeper.yaml"`); !strings.Contains(r, "cdc") {
		t.Errorf("verify: %s", r)
	}
}

// existing starts a cluster as it is before slotkeeper comes.
func existing(t *testing.T) *site {
	t.Helper()
	s := begin(t, map[string]any{
		"ignore_slots": nil,
		"postgresql":   map[string]any{"parameters": map[string]any{"hot_standby_feedback": nil, "max_slot_wal_keep_size": nil}},
	}, func(o *lab.PatroniOptions) {
		o.Gate, o.Trusted, o.Scope = "", "postgres", "shop"
	})
	if config, err := s.p.Key(s.Ctx, "config"); err != nil || strings.Contains(config, "ignore_slots") || !strings.Contains(config, "use_slots") {
		t.Fatalf("the cluster is not as it is without slotkeeper: %v %s", err, config)
	}
	leader := s.leader().Node()
	s.Exec(leader, "DROP EXTENSION slotkeeper")
	s.Exec(leader, "DROP OWNED BY slotkeeper")
	s.Exec(leader, "DROP ROLE slotkeeper")
	dir, err := os.MkdirTemp("", "page")
	s.OK(err)
	s.OK(os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := &site{scene: s, dir: dir, values: map[string]map[string]string{}, services: map[string]*service{}}
	t.Cleanup(at.end)
	at.put("tools/patronictl", fmt.Sprintf("#!/bin/sh\nPYTHONPATH=%s PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 -c 'from patroni.ctl import ctl; ctl()' \"$@\"\n", s.p.Library()))
	// systemctl only says what is wanted of it; the test does it.
	at.put("tools/systemctl", "#!/bin/sh\necho \"$@\" >>\"$SYSTEMCTL\"\n")
	return at
}

func (s *site) put(name, text string) {
	s.T.Helper()
	path := filepath.Join(s.dir, name)
	s.OK(os.MkdirAll(filepath.Dir(path), 0o755))
	s.OK(os.WriteFile(path, []byte(text), 0o755))
}

// valuesOf are the values of step 0 for one node; each that the page has is known
// here, and no other.
func (s *site) valuesOf(m *lab.PatroniMember, names []string) map[string]string {
	s.T.Helper()
	home := filepath.Join(s.dir, m.Name())
	s.OK(os.MkdirAll(filepath.Join(home, "units"), 0o755))
	port, err := lab.FreePort()
	s.OK(err)
	values := map[string]string{
		"NODE": m.Name(), "PATRONI": m.ConfigFile(), "PG": s.Lab.BinDir(), "RUNS_AS": runsAs(),
		"BIN": filepath.Join(home, "bin"), "ETC": filepath.Join(home, "etc"), "UNITS": filepath.Join(home, "units"),
		"LISTEN": fmt.Sprintf("127.0.0.1:%d", port), "SCOPE": s.p.Scope(),
		"ETCD":     `"` + strings.Join(s.p.Etcd().Endpoints(), `", "`) + `"`,
		"PRIMARY":  s.leader().Node().Conninfo("postgres", "postgres"),
		"PASSWORD": "open sesame: 'x' \\ 1",
	}
	for _, name := range names {
		if _, ok := values[name]; !ok {
			s.T.Fatalf("step 0 has %s, which the test has no value for", name)
		}
	}
	if len(names) != len(values) {
		s.T.Fatalf("step 0 has %q, and the test values for %d", names, len(values))
	}
	return values
}

func runsAs() string {
	if os.Geteuid() == 0 {
		return lab.ServerUser
	}
	return os.Getenv("USER")
}

// shell runs commands on a node as the page has them, and gives what they print. An
// error of any of them ends the test.
func (s *site) shell(node, commands string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, 2*patience)
	defer cancel()
	wanted := filepath.Join(s.dir, "systemctl")
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = "../.." // slotkeeper's source
	// make installs into a folder of the test's: the servers have the extension.
	cmd.Env = append(lab.Environment(), "PATH="+filepath.Join(s.dir, "tools")+":"+s.Lab.BinDir()+":"+os.Getenv("PATH"),
		"SYSTEMCTL="+wanted, "MAKEFLAGS=DESTDIR="+filepath.Join(s.dir, "installed"), "LC_ALL=C.UTF-8", "PAGER=cat")
	for name, value := range s.values[node] {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		s.T.Fatalf("on %s: %v\n%s\n%s", node, err, commands, said)
	}
	if text, err := os.ReadFile(wanted); err == nil {
		s.OK(os.Remove(wanted))
		if string(text) != "daemon-reload\nenable --now slotkeeper\n" {
			s.T.Fatalf("systemctl was asked for %q", text)
		}
		s.start(node)
	}
	return string(said)
}

// start does what systemd does with the unit: it runs the program as the unit's
// user, and waits until it says that it is ready.
func (s *site) start(node string) {
	s.T.Helper()
	text, err := os.ReadFile(filepath.Join(s.values[node]["UNITS"], "slotkeeper.service"))
	s.OK(err)
	unit := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			unit[name] = value
		}
	}
	if unit["User"] != runsAs() || unit["Type"] != "notify" {
		s.T.Fatalf("the unit is\n%s", text)
	}
	words := strings.Fields(unit["ExecStart"])
	v := &service{process: exec.Command(words[0], words[1:]...), log: filepath.Join(s.dir, node+".log"), socket: harness.Notify(s.T)}
	out, err := os.Create(v.log)
	s.OK(err)
	defer out.Close()
	v.process.Dir, v.process.Stdout, v.process.Stderr = s.dir, out, out
	v.process.Env = append(v.socket.Env(time.Minute), "PATH=/usr/bin:/bin")
	if os.Geteuid() == 0 {
		account, err := user.Lookup(unit["User"])
		s.OK(err)
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		s.OK(err)
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		s.OK(err)
		v.process.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	s.OK(v.process.Start())
	s.services[node] = v
	s.until("slotkeeper on "+node+" to be ready", func() (bool, string) {
		return v.socket.Count("READY=1") == 1, strings.Join(v.socket.All(), ", ")
	})
}

// end ends what systemctl has started.
func (s *site) end() {
	for node, v := range s.services {
		_ = v.process.Process.Signal(syscall.SIGTERM)
		killed := time.AfterFunc(10*time.Second, func() { _ = v.process.Process.Kill() })
		if err := v.process.Wait(); err != nil {
			s.T.Errorf("slotkeeper on %s: %v", node, err)
		}
		killed.Stop()
		if f, err := os.Open(v.log); err == nil && s.T.Failed() {
			text, _ := io.ReadAll(f)
			s.T.Logf("slotkeeper on %s:\n%s", node, text)
			_ = f.Close()
		}
	}
}
