package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

func waitTold(s *harness.Scene, socket *harness.Notified, what string, times int) {
	s.T.Helper()
	s.Wait(fmt.Sprintf("%s, %d times", what, times), func() (bool, string) {
		return socket.Count(what) >= times, strings.Join(socket.All(), ", ")
	})
}

// systemd is told that the daemon is ready after its first complete cycle, the
// watchdog is fed as cycles go on, or while etcd is silent, and is given the time that a healthy loop may
// take; the end is told of as well. A second controller is ready once it waits.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{})
	etcd := s.Etcd(lab.EtcdOptions{Members: 1})
	s.Logical(s.A, "cdc")
	leads, waits := harness.Notify(t), harness.Notify(t)
	s.OK(etcd.Members()[0].Freeze())
	d := s.RunWith(lab.DaemonOptions{Etcd: etcd.Section(nil), Env: leads.Env(time.Second)})
	waitTold(s, leads, "STATUS=waiting for etcd", 1)
	if leads.Count("READY=1") != 0 {
		t.Error("it is ready without etcd")
	}
	s.OK(etcd.Members()[0].Thaw())
	waitTold(s, leads, "READY=1", 1)
	if doc, ok := s.Status(); !ok || doc.Primary == nil || !doc.Complete {
		t.Errorf("it is ready before its first complete cycle: %+v", doc)
	}
	waitTold(s, leads, "WATCHDOG=1", 3)
	s.OK(etcd.Members()[0].Freeze()) // no reason for the watchdog to bite
	waitTold(s, leads, "STATUS=waits to lead", 1)
	waitTold(s, leads, "WATCHDOG=1", leads.Count("WATCHDOG=1")+2)
	s.OK(etcd.Members()[0].Thaw())
	waitTold(s, leads, "STATUS=leads", 2)

	second := s.RunWith(lab.DaemonOptions{Name: "second", Etcd: etcd.Section(nil), Env: waits.Env(time.Minute)})
	waitTold(s, waits, "READY=1", 1)
	waitTold(s, waits, "WATCHDOG=1", 1)
	s.OK(second.Stop(s.Ctx))
	s.OK(d.Stop(s.Ctx))

	for who, want := range map[*harness.Notified][]string{
		leads: {"WATCHDOG_USEC=18000000", "STATUS=waiting for etcd", "STATUS=leads", "READY=1", "WATCHDOG=1", "STATUS=waits to lead", "STOPPING=1"},
		waits: {"STATUS=waits to lead", "READY=1", "WATCHDOG=1", "STOPPING=1"},
	} {
		said := who.All()
		var first []string
		for _, one := range said {
			if !slices.Contains(first, one) {
				first = append(first, one)
			}
		}
		if !slices.Equal(first, want) || who.Count("READY=1") != 1 || said[len(said)-1] != "STOPPING=1" {
			t.Errorf("it was told\n%s", strings.Join(said, "\n"))
		}
	}
}

// The unit is one that systemd takes whole, and what it starts is there.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/slotkeeper.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "slotkeeper.service")
	const program, config = "/usr/local/bin/slotkeeper", "/etc/slotkeeper/slotkeeper.yaml"
	if strings.Count(string(text), "ExecStart="+program+" run --config "+config+"\n") != 1 {
		t.Errorf("it does not start %s with %s", program, config)
	}
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), program, harness.Binary(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	if err != nil || len(said) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
}

// The sample of slotkeeper's own configuration is one that it takes, without a warning.
func TestSampleConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/patroni/slotkeeper.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "slotkeeper.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Binary(t), "config", "show", "--origin", "--config", path)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		t.Errorf("%v\n%s", err, complaints.String())
	}
	for _, line := range []string{"source: patroni # file", "policy: prefer # file", "passfile: " + filepath.Dir(path)} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("it does not show %s:\n%s", line, out.String())
		}
	}
}
