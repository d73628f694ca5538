package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Disk is a node's disk that can be full for some files, or hang.
type Disk struct {
	scene *Scene
	node  *lab.Node
	fault string // the file in which its server reads what it is full for
}

// FaultyDisk gives a node such a disk, by a library that its server loads before
// all others, and restarts it.
func (s *Scene) FaultyDisk(n *lab.Node) *Disk {
	s.T.Helper()
	library := filepath.Join(s.Lab.Dir(), "fault.so")
	root, err := moduleRoot()
	s.OK(err)
	source := filepath.Join(root, "extension", "t", "fault.c")
	if out, err := exec.CommandContext(s.Ctx, "cc", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		s.T.Fatalf("compiling %s: %v\n%s", source, err, out)
	}
	d := &Disk{scene: s, node: n, fault: filepath.Join(n.DataDir(), "fault")}
	d.FullFor("")
	n.Env("LD_PRELOAD="+library, "FAULT="+d.fault)
	s.OK(n.Restart(s.Ctx))
	for _, standby := range s.Nodes()[1:] {
		s.OK(standby.WaitStreaming(s.Ctx))
	}
	return d
}

// FullFor lets each write fail that would fill a new file, or make a folder, whose
// path ends so; "" for none. What was made of the file stays, as on a full disk.
func (d *Disk) FullFor(suffix string) {
	d.scene.T.Helper()
	d.scene.OK(os.WriteFile(d.fault+".new", []byte(suffix), 0o644))
	d.scene.OK(os.Rename(d.fault+".new", d.fault))
}

// LeftBehind makes an empty file of the server's where there is none.
func (s *Scene) LeftBehind(path string) {
	s.T.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	s.OK(err)
	s.OK(file.Close())
	s.own(path)
}

// StopCheckpoint has the node write a checkpoint, on a standby a restartpoint, that
// stops when it has made up its mind which files to remove from a folder, and
// before it looks for them. The function that it gives lets it go on to its end.
func (d *Disk) StopCheckpoint(folder string) (goOn func()) {
	s := d.scene
	s.T.Helper()
	stopped := d.fault + ".stopped"
	s.OK(os.RemoveAll(stopped))
	d.FullFor("stop " + folder)
	ended := make(chan error, 1)
	go func() { ended <- d.node.Exec(s.Ctx, "CHECKPOINT") }()
	s.Wait("the checkpoint on "+d.node.Name()+" to stop", func() (bool, string) {
		select {
		case err := <-ended:
			s.T.Fatalf("it has ended: %v", err)
		default:
		}
		_, err := os.Stat(stopped)
		return err == nil, "it has not"
	})
	return func() {
		s.T.Helper()
		d.FullFor("")
		s.OK(<-ended)
	}
}

// HangFor has the first process hang that would make such a file, and gives its
// id, when it does. From then on the disk is as it should be for all others.
func (d *Disk) HangFor(suffix string, meanwhile func()) (pid int) {
	d.scene.T.Helper()
	d.FullFor("!" + suffix)
	meanwhile()
	d.scene.Wait("a process on "+d.node.Name()+" to make "+suffix, func() (bool, string) {
		text, _ := os.ReadFile(d.fault + ".pid") // not there yet, or half written
		var err error
		pid, err = strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
		return err == nil && strings.HasSuffix(string(text), "\n"), "none does"
	})
	d.FullFor("")
	d.scene.OK(os.Remove(d.fault + ".pid"))
	return pid
}
