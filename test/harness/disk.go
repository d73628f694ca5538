package harness

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Disk is a node's disk that can be full for some files.
type Disk struct {
	scene *Scene
	node  string // the file in which its server reads what it is full for
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
	d := &Disk{scene: s, node: filepath.Join(s.Lab.Dir(), n.Name()+".fault")}
	d.FullFor("")
	n.Env("LD_PRELOAD="+library, "FAULT="+d.node)
	s.OK(n.Restart(s.Ctx))
	s.OK(n.WaitStreaming(s.Ctx))
	return d
}

// FullFor lets each write that would make a file fail whose path ends so; ""
// for none.
func (d *Disk) FullFor(suffix string) {
	d.scene.T.Helper()
	d.scene.OK(os.WriteFile(d.node, []byte(suffix), 0o644))
}
