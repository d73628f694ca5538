package nodes

import (
	"os"
	"path/filepath"
	"testing"
)

// A slot whose directory has just gone, as while it is being dropped, is not
// there any more, and hides no other.
func TestReadWhileASlotIsDropped(t *testing.T) {
	p := newPair(t)
	p.logical("s1", "s2")
	folder := filepath.Join(p.a.DataDir(), "pg_replslot", "s1")
	ok(t, os.Rename(folder, folder+".away"))
	read := p.read(p.as)
	ok(t, os.Rename(folder+".away", folder))
	names := map[string]bool{}
	for _, s := range read.Slots {
		names[s.Name] = true
	}
	if names["s1"] || !names["s2"] {
		t.Errorf("the read shows %v, want s2 without s1", names)
	}
	if p.slot(p.as, "s1").Incarnation.Inode == 0 {
		t.Error("s1 is back and has no incarnation")
	}
}
