package standby

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestAbsentIsNotEmpty(t *testing.T) {
	c := newColumns([]cluster.Change{
		{Name: "absent"},
		{Name: "empty", Snapshot: cluster.Some([]byte(nil)), TwoPhaseAt: cluster.Some(cluster.LSN(0))},
		{Name: "given", Snapshot: cluster.Some([]byte("x")), TwoPhaseAt: cluster.Some(cluster.LSN(1)), Resume: "r", SnapshotAt: cluster.Some(cluster.LSN(2))},
	})
	if c.snapshots[0] != nil || c.snapshots[1] == nil || string(c.snapshots[2]) != "x" {
		t.Errorf("snapshots %#v, want NULL, no bytes, x", c.snapshots)
	}
	if c.twoPhaseAt[0] != nil || c.twoPhaseAt[1] == nil || *c.twoPhaseAt[2] != "0/1" {
		t.Errorf("two_phase_at %v, want NULL, 0/0, 0/1", c.twoPhaseAt)
	}
	if c.snapshotsAt[0] != nil || *c.snapshotsAt[2] != "0/2" {
		t.Errorf("snapshot_at %v, want NULL where there is none", c.snapshotsAt)
	}
	if c.resumes[0] != nil || *c.resumes[2] != "r" {
		t.Errorf("resume %v, want NULL where there is none", c.resumes)
	}
}
