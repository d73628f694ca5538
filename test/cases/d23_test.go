package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D23: a standby reboots, and for that time the topology does not even name it.
// It is not given up: what its mirrors need stays, and they are the same when it
// is back.
func TestD23RebootIsNotGivenUp(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{Standbys: 2, Settings: harness.Rewindable()})
	before := s.Slot(s.B, "cdc")
	member := fmt.Sprintf("    - {name: %s, conninfo: \"host=127.0.0.1 port=%d\"}\n", s.B.Name(), s.B.Port())
	s.Reload(member, "")
	s.OK(s.B.StopFast(s.Ctx))
	s.Reshape(s.A)
	want := s.Peek(s.A, "cdc")
	s.Pass(s.A, "cdc")
	s.Mirrored("cdc", s.C)
	s.Lasts(2*plan.DefaultRaiseEvery + time.Second) // the holds would be raised by now
	if at := s.Pins(s.A, cluster.HoldName); !at.NotAfter(before.CatalogXmin) {
		t.Errorf("the hold pins from %s, the mirror that is away needs %s", at, before.CatalogXmin)
	}
	s.VacuumCatalogs(s.A)

	s.FreezeDaemon()
	s.OK(s.B.Start(s.Ctx))
	s.Level()
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	if now := s.Slot(s.B, "cdc"); now != before {
		t.Errorf("the mirror went from %+v to %+v", before, now)
	}
	s.FailOver(s.B)
	s.Leads(s.B)
	s.Same(s.Peek(s.A, "cdc"), want)

	// Named again, as the primary that it is now.
	s.ThawDaemon()
	s.Reload("  members:\n", "  members:\n"+member)
	s.Behind(s.C)
	s.Safe([]string{"cdc"}, s.C)
	s.Same(s.Get(s.A, "cdc"), want)
}
